import { EventEmitter } from 'node:events'
import type { ServerResponse } from 'node:http'
import { PassThrough } from 'node:stream'
import { expect, test } from 'vitest'
import { createBodyReader } from './bodies.ts'
import type { ReceivedRequest } from './request.ts'

test('V6: a large body whose client disconnects before its turn is given up at once', async () => {
  const size = 100_000
  const limits = { maxBody: size, maxValues: size, maxInFlight: 8 * size, maxInFlightPerCaller: 4 * size }
  const bodies = createBodyReader(limits)
  const send = () => {
    const parts = { headers: { 'content-type': 'application/json' }, socket: { remoteAddress: '::1' }, complete: true }
    const request = Object.assign(new PassThrough(), parts)
    const response = new EventEmitter()
    const asked = { request: request as unknown as ReceivedRequest, response: response as ServerResponse }
    const reading = Promise.resolve(bodies.read({ ...asked, identity: undefined }))
    request.end(Buffer.alloc(size, ' '))
    return { reading, disconnect: () => response.emit('close') }
  }
  const [first, second, third] = [send(), send(), send()]
  expect(await first.reading).toHaveLength(size)
  second.disconnect()
  await expect(second.reading).rejects.toMatchObject({ status: 400 })
  expect(await third.reading).toHaveLength(size)
})
