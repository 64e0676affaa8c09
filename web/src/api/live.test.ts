import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import type { AdminEvents, CallView, InboxView, SessionView } from '../../../src/admin/contract.ts'
import {
  followLive,
  gatewayGone,
  liveApprovals,
  liveCalls,
  liveInbox,
  liveOverview,
  liveReload,
  liveServers,
  reconnections,
  streamState,
} from './live.ts'
import { isAnswering } from './request.ts'
import { session } from './session.ts'

/** An event stream whose events the test sends. */
class FakeEventSource extends EventTarget {
  static opened: FakeEventSource[] = []
  isClosed = false

  constructor() {
    super()
    FakeEventSource.opened.push(this)
  }

  send<Kind extends keyof AdminEvents>(kind: Kind, value: AdminEvents[Kind]): void {
    if (!this.isClosed) this.dispatchEvent(new MessageEvent(kind, { data: JSON.stringify(value) }))
  }

  close(): void {
    this.isClosed = true
  }
}

const user = (principal: string, admin: boolean): SessionView => ({
  ...{ principal, agent: 'dev', authenticated: true, admin, agents: ['dev'] },
})

const call = { id: 'a', at: 1, agent: 'dev', outcome: 'answered' } as CallView
const inbox = { items: [{ id: 'approval:1' }], left: 0 } as unknown as InboxView
const stream = (): FakeEventSource => FakeEventSource.opened.at(-1) as FakeEventSource
const openStreams = () => FakeEventSource.opened.filter(({ isClosed }) => !isClosed)

class FakeDocument extends EventTarget {
  hidden = false

  setHidden(hidden: boolean): void {
    this.hidden = hidden
    this.dispatchEvent(new Event('visibilitychange'))
  }
}

let tab: FakeDocument
let stop: () => void

beforeEach(() => {
  vi.useFakeTimers()
  vi.stubGlobal('EventSource', FakeEventSource)
  vi.stubGlobal('window', new EventTarget())
  tab = new FakeDocument()
  vi.stubGlobal('document', tab)
  FakeEventSource.opened = []
  stop = followLive()
})

afterEach(() => {
  stop()
  session.value = 'unknown'
  isAnswering.value = true
  vi.unstubAllGlobals()
  vi.useRealTimers()
})

function reportEverything(): void {
  stream().send('overview', { version: '1' } as AdminEvents['overview'])
  stream().send('servers', [])
  stream().send('calls', [call])
  stream().send('approvals', [])
  stream().send('reload', { at: 1, ok: true, error: null, changes: [] })
  stream().send('inbox', inbox)
}

const reported = () => [
  ...[liveOverview.value, liveServers.value, liveApprovals.value, liveReload.value, liveInbox.value],
  liveCalls.value.length || undefined,
]
const nothing = Array(6).fill(undefined)

test.each([
  ['signs out', 'none' as const],
  ['is another one', user('key:intern', false)],
  ['loses admin rights', user('key:boss', false)],
])('G10: nothing that the event stream reported is left when the user %s', (_, next) => {
  session.value = user('key:boss', true)
  reportEverything()
  expect(reported()).not.toContain(undefined)
  const first = stream()
  session.value = next
  expect(first.isClosed).toBe(true)
  expect(reported()).toEqual(nothing)
  expect(streamState.value).toBe('reconnecting')
  expect(openStreams()).toHaveLength(next === 'none' ? 0 : 1)
})

test('G10: a tab that stays hidden closes the event stream, and opens it again when it is shown', () => {
  vi.stubGlobal('fetch', () => Promise.reject(new TypeError('offline')))
  session.value = user('key:intern', false)
  stream().send('calls', [call])
  tab.setHidden(true)
  vi.advanceTimersByTime(5_000)
  tab.setHidden(false)
  stream().send('calls', [])
  vi.advanceTimersByTime(8_000)
  expect(openStreams()).toHaveLength(1)
  stream().send('calls', [])
  tab.setHidden(true)
  vi.advanceTimersByTime(10_000)
  window.dispatchEvent(new Event('online'))
  vi.advanceTimersByTime(600_000)
  expect(openStreams()).toHaveLength(0)
  expect(liveCalls.value).toEqual([call])
  const before = reconnections.value
  tab.setHidden(false)
  expect(openStreams()).toHaveLength(1)
  stream().send('calls', [])
  // Pages load again what they have missed.
  expect(reconnections.value).toBe(before + 1)
})

test('G10: a tab that is opened in the background opens no event stream, but knows the inbox', async () => {
  const requests: string[] = []
  vi.stubGlobal('fetch', async (url: string) => {
    requests.push(url)
    return Response.json(inbox)
  })
  tab.hidden = true
  session.value = user('key:boss', true)
  await vi.advanceTimersByTimeAsync(0)
  expect(liveInbox.value).toEqual(inbox)
  await vi.advanceTimersByTimeAsync(20_000)
  expect(requests).toEqual(['/admin/api/inbox', '/admin/api/inbox'])
  expect(openStreams()).toHaveLength(0)
  tab.setHidden(false)
  expect(openStreams()).toHaveLength(1)
  await vi.advanceTimersByTimeAsync(60_000)
  expect(requests.filter((path) => path.endsWith('/inbox'))).toHaveLength(2)
})

test('G10: after a reconnect, only calls that the gateway reports again are shown as running', () => {
  const running = (id: string): CallView => ({ ...call, id, outcome: 'running', ms: null })
  session.value = user('key:boss', true)
  stream().send('calls', [call, running('b'), running('c')])
  stream().dispatchEvent(new Event('error'))
  vi.advanceTimersByTime(1_000)
  expect(liveCalls.value.map(({ id }) => id)).toEqual(['a', 'b', 'c'])
  stream().send('calls', [running('c')])
  expect(liveCalls.value.map(({ id }) => id)).toEqual(['a', 'c'])
})

test('G10: the gateway is gone when neither its event stream nor its API answers, until one of them does', async () => {
  const boss = user('key:boss', true)
  let fetched = () => Promise.reject<Response>(new TypeError('refused'))
  vi.stubGlobal('fetch', () => fetched())
  const refuse = async () => {
    stream().dispatchEvent(new Event('error'))
    await vi.advanceTimersByTimeAsync(5_000)
  }
  session.value = boss
  stream().send('calls', [])
  await refuse()
  expect(gatewayGone.value).toBe(false)
  await refuse()
  await refuse()
  expect(gatewayGone.value).toBe(true)
  stream().send('calls', [])
  expect(gatewayGone.value).toBe(false)
  // A proxy in front of it that answers is not the gateway; one that does not pass on events is no reason to warn.
  fetched = async () => new Response('Bad gateway', { status: 502 })
  for (let times = 0; times < 3; times++) await refuse()
  expect(gatewayGone.value).toBe(true)
  fetched = async () => Response.json(boss)
  await refuse()
  expect([streamState.value, gatewayGone.value]).toEqual(['offline', false])
})

test('G10: a gateway that hangs is gone, also if the connection stays open', async () => {
  vi.stubGlobal('fetch', () => new Promise(() => {}))
  session.value = user('key:boss', true)
  stream().send('calls', [])
  await vi.advanceTimersByTimeAsync(9_000)
  expect(gatewayGone.value).toBe(false)
  await vi.advanceTimersByTimeAsync(1_000)
  expect(gatewayGone.value).toBe(true)
})
