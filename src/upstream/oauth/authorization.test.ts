import { expect, test } from 'vitest'
import { ToolwayError } from '../../core/errors.ts'
import { type HttpChannel, ResponseHead } from '../transports/http-channel.ts'
import { authorizedChannel, type RequestAuthorizer } from './authorization.ts'

const refusal = new ResponseHead(
  { status: 401, headers: new Map(), repeated: [] },
  { abort() {}, pause() {}, resume() {} },
)

/** A server that answers every request with 401, and counts the requests. */
function refusing(): HttpChannel & { asked: number } {
  const channel = {
    asked: 0,
    async request() {
      channel.asked++
      return refusal
    },
  }
  return channel
}

const request = { method: 'POST', path: '/', headers: {} } as const
const nobody = () => ({ data() {}, end() {}, lost() {} })

test('F12: a request that is refused with 401 is repeated once with a new token', async () => {
  const channel = refusing()
  const authorize: RequestAuthorizer = { header: () => `Bearer ${channel.asked}`, refused: async () => true }
  expect((await authorizedChannel(channel, authorize).request(request, nobody)).status).toBe(401)
  expect(channel.asked).toBe(2)
})

test('F12: where no token can be obtained after a 401, the request does not count as unsent', async () => {
  const channel = refusing()
  const authorize: RequestAuthorizer = {
    header: () => 'Bearer x',
    refused: () => Promise.reject(new ToolwayError('SERVER_UNAVAILABLE', 'No token.', { server: 'x', unsent: true })),
  }
  const error = await authorizedChannel(channel, authorize)
    .request(request, nobody)
    .catch((thrown) => thrown)
  expect(error).toMatchObject({ code: 'SERVER_UNAVAILABLE', details: { server: 'x' } })
  expect(error.details.unsent).toBeUndefined()
})
