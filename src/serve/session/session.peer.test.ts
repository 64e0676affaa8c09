import { expect, test } from 'vitest'
import { UnsupportedRequest } from '../../core/errors.ts'
import { Json } from '../../json/json.ts'
import { createSessionPeer } from './session.ts'

test('V1: a session asks its client only for methods of the protocol that the client has declared', async () => {
  const asked: string[] = []
  const ask = async (_tell: unknown, method: string) => {
    asked.push(method)
    return Json.of({ action: 'accept' })
  }
  const listener = { capabilities: { elicitation: {} }, clientRequests: { ask } as never, logLevel: undefined }
  const { signal } = new AbortController()
  const peer = createSessionPeer(listener, () => true, signal)
  for (const method of ['evil/method', 'tools/call', 'constructor', 'roots/list']) {
    await expect(peer.ask(method, Json.of({}), signal)).rejects.toBeInstanceOf(UnsupportedRequest)
  }
  await peer.ask('elicitation/create', Json.of({}), signal)
  expect(asked).toEqual(['elicitation/create'])
})

test('B2: any request of a server, which one of several calls may be waiting for, may go on the stream of another call', async () => {
  const sent: [string, boolean | undefined][] = []
  const ask = async (send: (message: Buffer) => boolean, method: string) => {
    send(Buffer.from(method))
    return Json.of({})
  }
  const capabilities = { elicitation: {}, roots: {} }
  const { signal } = new AbortController()
  const peer = createSessionPeer(
    { capabilities, clientRequests: { ask } as never, logLevel: undefined },
    (message, onCalls) => sent.push([message.toString(), onCalls]) > 0,
    signal,
  )
  for (const method of ['roots/list', 'elicitation/create']) await peer.ask(method, Json.of({}), signal)
  expect(sent).toEqual([
    ['roots/list', true],
    ['elicitation/create', true],
  ])
})
