import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { serverProgram } from '../fixtures/programs.ts'
import { takeAuthSteps } from './client-auth.ts'
import { type Task, takeSteps } from './client-steps.ts'

export interface ClientDriver extends AsyncDisposable {
  /** What the suite has to run. */
  readonly command: string
}

/** Does in this process what the suite wants of its clients: a program for each would have to load everything anew. */
export async function startClientDriver(): Promise<ClientDriver> {
  const server = createServer(async (request, response) => {
    try {
      const task: Task = JSON.parse(await text(request))
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
    command: [process.execPath, serverProgram('client'), own].map((word) => `'${word}'`).join(' '),
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      server.close()
    },
  }
}
