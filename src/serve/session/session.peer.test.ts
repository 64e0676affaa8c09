import { expect, test } from 'vitest'
import { UnsupportedRequest } from '../../core/errors.ts'
import { Json } from '../../core/json.ts'
import { createSessionPeer } from './session.ts'

test('V1: a session asks its client only for methods of the protocol that the client has declared', async () => {
  const asked: string[] = []
  const ask = async (_tell: unknown, method: string) => {
    asked.push(method)
    return Json.of({ action: 'accept' })
  }
  const listener = { capabilities: { elicitation: {} }, clientRequests: { ask } as never, logLevel: undefined }
  const { signal } = new AbortController()
  const peer = createSessionPeer(
    () => listener,
    () => true,
    signal,
  )
  for (const method of ['evil/method', 'tools/call', 'constructor', 'roots/list']) {
    await expect(peer.ask(method, Json.of({}), signal)).rejects.toBeInstanceOf(UnsupportedRequest)
  }
  await peer.ask('elicitation/create', Json.of({}), signal)
  expect(asked).toEqual(['elicitation/create'])
})
