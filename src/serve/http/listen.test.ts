import { EventEmitter } from 'node:events'
import type { Server } from 'node:http'
import { expect, test } from 'vitest'
import { listen } from './listen.ts'

/** A server that cannot listen. */
function failingServer(code: string): Server {
  const server = new EventEmitter()
  const fail = () => queueMicrotask(() => server.emit('error', Object.assign(new Error(code), { code })))
  return Object.assign(server, { listen: fail }) as unknown as Server
}

test.each([
  ['127.0.0.1', 'such as ::1'],
  ['localhost', 'such as ::1'],
  ['10.1.2.3', 'such as 127.0.0.1'],
])('B11: if %s is not an address of this machine, another one is proposed', async (host, advice) => {
  await expect(listen(failingServer('EADDRNOTAVAIL'), host, 80)).rejects.toThrow(advice)
})
