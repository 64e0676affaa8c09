import { fileURLToPath } from 'node:url'

const program = fileURLToPath(import.meta.resolve('@modelcontextprotocol/server-everything/dist/index.js'))

/** A real server beside one that cannot start. */
export const twoServers = {
  mcpServers: {
    everything: { command: process.execPath, args: [program] },
    broken: { command: process.execPath, args: ['-e', 'process.exit(3)'], description: 'Never starts' },
  },
}
