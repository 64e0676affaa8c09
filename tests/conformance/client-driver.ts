import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { missing } from '../fixtures/debian.ts'
import { serverProgram } from '../fixtures/programs.ts'
import { takeAuthSteps } from './client-auth.ts'
import { type Task, takeSteps } from './client-steps.ts'

export interface ClientDriver extends AsyncDisposable {
  /** What the suite has to run. */
  readonly command: string
}

const names = ['scenario', 'url', 'version', 'context']

const quoted = (word: string): string => `'${word}'`

/** A tenth of the time that Node takes to start, once for each scenario. The suite appends the address of its server. */
const curl = (driver: string): string => {
  const fields = Object.entries({
    scenario: '$MCP_CONFORMANCE_SCENARIO',
    url: '$1',
    version: '$MCP_CONFORMANCE_PROTOCOL_VERSION',
    context: '$MCP_CONFORMANCE_CONTEXT',
  }).map(([name, value]) => `--data-urlencode "${name}=${value}"`)
  const words = ['exec curl --silent --show-error --fail-with-body', ...fields, driver, '>&2']
  return `sh -c ${quoted(words.join(' '))} client`
}

const node = (driver: string): string => [process.execPath, serverProgram('client'), driver].map(quoted).join(' ')

/** Does in this process what the suite wants of its clients: a program for each would have to load everything anew. */
export async function startClientDriver(): Promise<ClientDriver> {
  const server = createServer(async (request, response) => {
    try {
      const given = new URLSearchParams(await text(request))
      const [scenario = '', url = '', version = '', context] = names.map((name) => given.get(name) || undefined)
      const task: Task = { scenario, url, version, context }
      await (task.scenario.startsWith('auth/') ? takeAuthSteps : takeSteps)(task)
      response.writeHead(204).end()
    } catch (error) {
      response.writeHead(500).end(String((error as Error).stack))
    }
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const own = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return {
    command: missing('curl') === undefined ? curl(own) : node(own),
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      server.close()
    },
  }
}
