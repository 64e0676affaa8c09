import { serverProgram } from '../../tests/fixtures/programs.ts'

const program = serverProgram('everything')

/** A real server beside one that cannot start. */
export const twoServers = {
  mcpServers: {
    everything: { command: process.execPath, args: [program] },
    broken: { command: process.execPath, args: ['-e', 'process.exit(3)'], description: 'Never starts' },
  },
}
