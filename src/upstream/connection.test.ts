import { expect, test } from 'vitest'
import { callOf } from '../core/call.fixture.ts'
import type { Peer } from '../core/call.ts'
import { ServerError } from '../core/errors.ts'
import { silentLog } from '../core/log.ts'
import { openConnection } from './connection.ts'
import { scriptedPeer } from './peer.fixture.ts'

const never = new AbortController().signal
const ask = (method: string, signal = never) => ({ method, params: () => Buffer.from('{}'), signal })
const open = async (...script: Parameters<typeof scriptedPeer>) => {
  const peer = scriptedPeer(...script)
  return {
    peer,
    connection: await openConnection(peer.transport, { server: 's', owned: false, log: silentLog }, never),
  }
}
const peer = (changes: Partial<Peer>): Peer => ({ ...callOf().peer, ...changes })
const hearing = (who: string, seen: unknown[]) =>
  peer({ notify: (_, params) => seen.push([who, (params.value as { progress: number }).progress]) })
const nextTurn = () => new Promise((resolve) => setImmediate(resolve))

test('B2: a result comes back as the bytes in which the server wrote it', async () => {
  const { connection } = await open({ 'tools/call': () => ({ content: [], surprise: { deep: [1] } }) })
  expect((await connection.request(ask('tools/call'))).toString()).toBe('{"content":[],"surprise":{"deep":[1]}}')
})

test('T2: an error of the server keeps its code, message and data', async () => {
  const error = { code: -32042, message: 'open this page', data: { url: 'x', more: [1] } }
  const { connection } = await open({ 'tools/call': () => ({ error }) })
  const thrown = await connection.request(ask('tools/call')).catch((thrown: unknown) => thrown)
  expect(thrown).toBeInstanceOf(ServerError)
  expect((thrown as ServerError).error.value).toEqual(error)
})

test('G3: answers in another order reach the one who asked', async () => {
  const { connection, peer } = await open({})
  const first = connection.request(ask('a'))
  const second = connection.request(ask('b'))
  peer.say({ id: 2, result: { to: 'b' } })
  peer.say({ id: 1, result: { to: 'a' } })
  expect([JSON.parse(String(await first)), JSON.parse(String(await second))]).toEqual([{ to: 'a' }, { to: 'b' }])
})

test('F10: a cancelled request tells the server which one, and a late answer is dropped', async () => {
  const { connection, peer } = await open({})
  const caller = new AbortController()
  const answer = connection.request(ask('tools/call', caller.signal))
  await nextTurn()
  caller.abort(new Error('enough'))
  await expect(answer).rejects.toThrow('enough')
  expect(peer.heard.at(-1)).toMatchObject({ method: 'notifications/cancelled', params: { requestId: 1 } })
  peer.say({ id: 1, result: {} })
  peer.say({ id: 'stranger', result: {} })
})

test('F12: when the line goes down every pending request fails, later ones at once', async () => {
  const { connection, peer } = await open({})
  let closed = ''
  connection.onClosed = (error) => {
    closed = error.message
  }
  const pending = [connection.request(ask('a')), connection.request(ask('b'))]
  peer.die('The process ended with code 1.')
  for (const request of pending) await expect(request).rejects.toMatchObject({ code: 'OUTCOME_UNKNOWN' })
  await expect(connection.request(ask('c'))).rejects.toMatchObject({ code: 'SERVER_UNAVAILABLE' })
  expect(closed).toBe('The process ended with code 1.')
})

test('B2: progress reaches the request whose token it carries, and no other', async () => {
  const { connection, peer } = await open({})
  const seen: unknown[] = []
  const first = connection.request({ ...ask('a'), peer: hearing('a', seen) })
  const second = connection.request({ ...ask('b'), peer: hearing('b', seen) })
  peer.say({ method: 'notifications/progress', params: { progressToken: 2, progress: 1 } })
  peer.say({ method: 'notifications/progress', params: { progressToken: 1, progress: 2 } })
  peer.say({ method: 'notifications/progress', params: { progressToken: 99, progress: 3 } })
  peer.say({ id: 1, result: {} })
  peer.say({ id: 2, result: {} })
  await Promise.all([first, second])
  peer.say({ method: 'notifications/progress', params: { progressToken: 1, progress: 4 } })
  expect(seen).toEqual([
    ['b', 1],
    ['a', 2],
  ])
})

test('B2: a ping of the server is answered; what was not offered to it is refused', async () => {
  const { peer } = await open({})
  peer.say({ id: 'p', method: 'ping' })
  peer.say({ id: 7, method: 'sampling/createMessage', params: {} })
  expect(peer.heard).toMatchObject([
    { id: 'p', result: {} },
    { id: 7, error: { code: -32603 } },
  ])
})

test('what is not JSON-RPC is ignored', async () => {
  const { connection, peer } = await open({ ping: () => ({}) })
  peer.say({ nonsense: true })
  peer.say({ id: 1, method: 5 })
  await expect(connection.request(ask('ping'))).resolves.toBeDefined()
})
