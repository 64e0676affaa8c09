import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { ServerEntry } from '../targets/toolway.ts'
import { startContextForge } from './context-forge.ts'
import { mcpAim, startFront } from './front.ts'
import { installer } from './install.ts'
import { mcpHubAim } from './mcp-hub.ts'
import type { Peer } from './peer.ts'

const mcpAt = (port: number) => mcpAim(`http://127.0.0.1:${port}/mcp`)

const commandOf = ({ command, args }: ServerEntry): string[] => [command as string, ...(args as string[])]

/** The entry as every client's configuration has it, in a file. */
async function configIn(folder: string, { command, args, url }: ServerEntry): Promise<string> {
  const file = join(folder, 'mcp.json')
  const echo = url === undefined ? { command, args } : { url }
  await writeFile(file, JSON.stringify({ mcpServers: { echo } }))
  return file
}

/** Other gateways, as the registries offer them; none is installed before it is started. */
export function findPeers(root: string, note: (line: string) => void): Peer[] {
  const install = installer(root, note)
  return [
    {
      name: 'mcp-hub',
      fronts: ['stdio', 'http'],
      leastTimes: { stdio: 2, http: 6 },
      note: 'through its own REST interface, which is cheaper than MCP',
      async start(server, folder) {
        const config = await configIn(folder, server)
        const command = await install.npm('mcp-hub')
        const args = (port: number) => ['--port', String(port), '--config', config]
        return startFront({ command, folder, args, aim: mcpHubAim })
      },
    },
    {
      name: 'supergateway',
      fronts: ['stdio'],
      async start(server, folder) {
        const command = await install.npm('supergateway')
        const how = ['--outputTransport', 'streamableHttp', '--stateful', '--logLevel', 'none']
        const args = (port: number) => ['--stdio', commandOf(server).join(' '), ...how, '--port', String(port)]
        return startFront({ command, folder, args, aim: mcpAt })
      },
    },
    {
      name: 'mcp-proxy (npm)',
      fronts: ['stdio'],
      leastTimes: { stdio: 4 },
      async start(server, folder) {
        const command = await install.npm('mcp-proxy')
        const how = (port: number) => ['--host', '127.0.0.1', '--port', String(port), '--server', 'stream']
        return startFront({ command, folder, args: (port) => [...how(port), '--', ...commandOf(server)], aim: mcpAt })
      },
    },
    {
      name: 'FastMCP (Python)',
      fronts: ['stdio', 'http'],
      async start(server, folder) {
        const config = await configIn(folder, server)
        const command = await install.pip('fastmcp', 'fastmcp')
        const how = ['run', config, '--transport', 'http', '--no-banner', '--log-level', 'ERROR', '--port']
        return startFront({ command, folder, args: (port) => [...how, String(port)], aim: mcpAt })
      },
    },
    {
      name: 'mcp-proxy (Python)',
      fronts: ['stdio'],
      async start(server, folder) {
        const command = await install.pip('mcp-proxy', 'mcp-proxy')
        const args = (port: number) => ['--host', '127.0.0.1', '--port', String(port), '--', ...commandOf(server)]
        return startFront({ command, folder, args, aim: mcpAt })
      },
    },
    {
      name: 'ContextForge (Python)',
      fronts: ['http'],
      async start(server, folder) {
        const command = await install.pip('mcp-contextforge-gateway', 'mcpgateway')
        return startContextForge(command, folder, server.url as string)
      },
    },
    {
      name: 'TBXark mcp-proxy (Go)',
      fronts: ['stdio'],
      async start(server, folder) {
        const command = await install.go('github.com/TBXark/mcp-proxy', 'mcp-proxy')
        const config = join(folder, 'config.json')
        const args = (port: number) => {
          return ['--config', config, '--http-timeout', '30', '--port', String(port)]
        }
        const aim = (port: number) => mcpAim(`http://127.0.0.1:${port}/echo/mcp`)
        const [program, ...given] = commandOf(server)
        const mcpServers = { echo: { command: program, args: given } }
        await writeFile(config, JSON.stringify({ mcpProxy: { type: 'streamable-http', name: 'bench' }, mcpServers }))
        return startFront({ command, folder, args, aim })
      },
    },
    {
      name: 'ToolHive vMCP (Go)',
      fronts: ['http'],
      async start() {
        await install.go('github.com/stacklok/toolhive/cmd/vmcp', 'vmcp')
        throw new Error('it was installed, but this benchmark does not know how to start it')
      },
    },
  ]
}
