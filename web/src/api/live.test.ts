import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import type { AdminEvents, CallView, InboxView, SessionView } from '../../../src/serve/admin/contract.ts'
import {
  followLive,
  liveApprovals,
  liveCalls,
  liveInbox,
  liveOverview,
  liveReload,
  liveServers,
  streamState,
} from './live.ts'
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

let stop: () => void

beforeEach(() => {
  vi.useFakeTimers()
  vi.stubGlobal('EventSource', FakeEventSource)
  vi.stubGlobal('window', new EventTarget())
  FakeEventSource.opened = []
  stop = followLive()
})

afterEach(() => {
  stop()
  session.value = 'unknown'
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
