import { writeFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { ServerEntry } from '../targets/toolway.ts'
import { startContextForge } from './context-forge.ts'
import { mcpAim, startFront } from './front.ts'
import type { Installer } from './install.ts'
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

/** Other gateways, as the registries offer them or as they were built before; none is installed before it is started. */
export function findPeers(install: Installer): Peer[] {
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
        // Its module has no version that the module proxy knows, so that it may have to be built from a snapshot.
        const built = await install.find('mcp-proxy').catch(() => undefined)
        const command = built ?? (await install.go('github.com/TBXark/mcp-proxy', 'mcp-proxy'))
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
      name: 'agentgateway (Rust)',
      fronts: ['stdio', 'http'],
      async start(server, folder) {
        const command = await install.find('agentgateway')
        const { command: cmd, args, url } = server
        const target = { name: 'echo', ...(url === undefined ? { stdio: { cmd, args } } : { mcp: { host: url } }) }
        return startFront({
          ...{ command, folder },
          args(port) {
            const routes = [{ backends: [{ mcp: { targets: [target] } }] }]
            return ['--config', JSON.stringify({ binds: [{ port, listeners: [{ routes }] }] })]
          },
          aim: mcpAt,
        })
      },
    },
    {
      name: 'nginx',
      fronts: ['http'],
      note: 'only forwards HTTP',
      async start(server, folder) {
        const command = await install.find('nginx')
        return startFront({
          command,
          folder,
          args: (port) => nginxArguments(folder, port, server.url as string),
          aim: mcpAt,
        })
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

/** A reverse proxy in one process on loopback, with connections to the server that are kept alive. */
function nginxArguments(folder: string, port: number, url: string): string[] {
  const { host, pathname } = new URL(url)
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    (kind) => `${kind}_temp_path ${folder}/${kind};`,
  )
  const file = join(folder, 'nginx.conf')
  writeFileSync(
    file,
    `daemon off; worker_processes 1; pid ${folder}/nginx.pid; error_log stderr; events {}
http {
  access_log off; ${temporary.join(' ')} keepalive_requests 1000000000;
  upstream echo { server ${host}; keepalive 64; keepalive_requests 1000000000; }
  server {
    listen 127.0.0.1:${port};
    location / { proxy_pass http://echo${pathname}; proxy_http_version 1.1; proxy_set_header Connection ""; }
  }
}
`,
  )
  return ['-c', file]
}
