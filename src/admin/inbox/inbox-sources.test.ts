import { mkdtempDisposable, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { createManualClock } from '../../../tests/fixtures/clock.ts'
import type { PinState } from '../../catalog/pins/pin-state.ts'
import { ConfigError } from '../../config/problems.ts'
import type { PendingApproval } from '../../core/approval.ts'
import type { SourceStatus } from '../../core/source-status.ts'
import { Rejections } from '../../runtime/rejections.ts'
import { ReloadHistory } from '../../runtime/reload.ts'
import { changeKeyFile, keyFile } from '../../stores/key-file.ts'
import { brokenChain } from '../audit/audit.ts'
import type { InboxEntry } from './inbox.ts'
import { type InboxContext, inboxSources } from './inbox-sources.ts'

let open: AsyncDisposableStack
let folder: string
beforeEach(async () => {
  open = new AsyncDisposableStack()
  folder = open.use(await mkdtempDisposable(join(tmpdir(), 'toolway-inbox-'))).path
})
afterEach(() => open.disposeAsync())

const day = 86_400_000

const healthy = { health: 'healthy', reason: '', since: 1, breaker: 'closed', transport: 'stdio', description: '' }
const server = (name: string, status: Partial<SourceStatus>) => ({ name, tools: 1, status: { ...healthy, ...status } })

const pin = (changes: Partial<PinState> = {}): PinState => ({
  ...{ server: 'files', kind: 'tool', name: 'read', label: 'files.read', state: 'approved', quarantined: false },
  ...{ hash: 'h1', seenAt: 7, approvedAt: 1, approvedBy: 'first sight' as const },
  ...{ changed: [], flags: [], pending: [] },
  ...changes,
})

const approval: PendingApproval = {
  ...{ id: 'a1', call: 'c1', agent: 'intern', principal: 'key:ci', session: 's1', server: 'files', tool: 'write' },
  ...{ arguments: '{ "path": "private" }', rule: 'agents.intern.approve[0]', by: [['admins']], askedAt: 5, until: 9 },
}

/** A gateway in which nothing needs a person, apart from what a test sets. */
function gateway() {
  const clock = createManualClock()
  const state = {
    servers: [] as ReturnType<typeof server>[],
    pins: [] as PinState[],
    paused: new Set<string>(),
    approvals: [] as PendingApproval[],
    freeBytes: 1e12,
    stores: [] as { name: string; up: boolean; problem?: string }[],
    busy: false,
    audit: { recording: true, error: undefined as string | undefined, changedBeforeStart: 0 },
  }
  const listeners = new Set<() => void>()
  const onChange = (listener: () => void) => {
    listeners.add(listener)
    return { [Symbol.dispose]: () => void listeners.delete(listener) }
  }
  const config = { stores: { path: folder }, audit: { path: folder } }
  const alike = { kind: 'look-alike', severity: 'warn', where: 'name', excerpt: '1ist resembles files.list' }
  const encoded = { kind: 'encoded', severity: 'high', where: 'description', excerpt: 'decoded: curl evil.example' }
  const generation = {
    loaded: { config },
    redactor: { text: (name: string) => name },
    catalog: { summaries: () => state.servers },
    pins: {
      list: () => state.pins,
      onReview: onChange,
      findingsOf: (label: string) => (label.startsWith('evil') ? [alike, encoded] : []),
    },
    servers: { get: (name: string) => ({ server: { control: { paused: state.paused.has(name) } } }) },
  }
  const rejections = new Rejections(clock)
  const history = new ReloadHistory()
  const context = {
    ...{ clock, rejections, history, current: () => generation, storeReadings: () => state.stores },
    audit: { status: () => state.audit },
    freeBytes: async () => state.freeBytes,
    isBusy: () => state.busy,
    sharedApprovals: { list: () => state.approvals, onChange },
  } as unknown as InboxContext
  const sources = inboxSources(context)
  const items = () => sources.flatMap((source) => source.items()) as InboxEntry[]
  const watch = (listener: () => void) => {
    for (const source of sources) open.use(source.onChange?.(listener))
  }
  return { state, items, watch, clock, rejections, history, changed: () => listeners.forEach((tell) => void tell()) }
}

const pathsOf = ({ actions = [] }: InboxEntry) => actions.map(({ path }) => path)

describe('V7: the sources of the inbox', () => {
  test('a gateway without problems has none', () => {
    const { items, state } = gateway()
    state.servers = [server('files', {}), server('new', { health: 'starting' }), server('off', { health: 'disabled' })]
    state.pins = [pin()]
    state.stores = [{ name: 'redis', up: true }]
    expect(items()).toEqual([])
  })

  test('approvals, with their end and their answers, without the arguments', () => {
    const { items, state, watch, changed } = gateway()
    let heard = 0
    watch(() => heard++)
    state.approvals = [approval]
    changed()
    expect(heard).toBeGreaterThan(0)
    const [item] = items()
    expect(item).toMatchObject({ id: 'approval:a1', kind: 'approval', since: 5, until: 9, link: '/approvals' })
    expect(item?.title).toContain('files.write')
    expect(item?.actions?.map(({ path, body }) => [path, body])).toEqual([
      ['approvals/a1', { decision: 'once' }],
      ['approvals/a1', { decision: 'session' }],
      ['approvals/a1', { decision: 'deny' }],
    ])
    expect(JSON.stringify(item)).not.toContain('private')
  })

  test('W2: definitions that are new, changed or flagged, until they are decided or the server is disabled', () => {
    const { items, state, watch, changed } = gateway()
    watch(() => {})
    state.pins = [
      pin({
        label: 'files.read',
        state: 'flagged',
        quarantined: true,
        flags: ['secrecy'],
        changed: ['description'],
      }),
      pin({ label: 'files.list', state: 'changed', changed: ['inputSchema'] }),
      pin({ label: 'evil.1ist', server: 'evil', name: '1ist', state: 'flagged', flags: ['look-alike'] }),
      pin({ label: 'files.late', state: 'new', quarantined: true }),
      pin({ label: 'files.known', flags: ['secrecy'], approvedBy: 'operator' }),
      pin({ label: 'files.barred', state: 'blocked', quarantined: true }),
    ]
    changed()
    const found = items()
    expect(found.map(({ id, severity, link }) => [id, severity, link])).toEqual([
      ['definition:files.read', 'critical', '/pins/files.read'],
      ['definition:files.list', 'warning', '/pins/files.list'],
      ['definition:evil.1ist', 'critical', '/pins/evil.1ist'],
      ['definition:files.late', 'warning', '/pins/files.late'],
    ])
    expect(found.map(({ title }) => title)).toEqual([
      'files.read is flagged',
      'The definition of files.list changed',
      'evil.1ist is flagged',
      'files.late is new',
    ])
    expect(found[0]?.detail).toBe('Changed: description. The scanner found: secrecy. No agent can see or use it.')
    expect(found[2]?.detail).toContain('look-alike in name: 1ist resembles files.list')
    expect(found[2]?.detail).toContain('encoded in description: decoded: curl evil.example')
    expect(pathsOf(found[0]!)).toEqual(['pins/files.read/block', 'servers/files/disable'])
    expect(found[0]?.actions?.[0]?.body).toEqual({ hash: 'h1' })
    for (const name of ['files', 'evil']) state.paused.add(name)
    expect(items()).toEqual([])
  })

  test('servers that fail or need a sign-in', () => {
    const { items, state } = gateway()
    const reason = 'Connection refused. Next attempt in 3 s.'
    state.servers = [
      server('down', { health: 'unhealthy', reason }),
      server('half', { health: 'degraded', reason: 'x' }),
      server('mail', { health: 'needs-auth', reason: 'The grant has ended.' }),
      server('flaky', { health: 'healthy', breaker: 'open' }),
    ]
    const found = items()
    expect(found.map(({ id, kind, severity }) => [id, kind, severity])).toEqual([
      ['server:down', 'server', 'warning'],
      ['server:half', 'server', 'info'],
      ['server:mail', 'sign-in', 'warning'],
      ['server:flaky', 'server', 'warning'],
    ])
    expect(found.map(pathsOf)).toEqual([
      ['servers/down/restart', 'servers/down/disable'],
      ['servers/half/restart', 'servers/half/disable'],
      ['servers/mail/sign-in'],
      ['servers/flaky/restart', 'servers/flaky/disable'],
    ])
    // Without the countdown, which would be a change in every second.
    expect(found[0]?.detail).toBe('Connection refused.')
  })

  test('one cause is one item: an overloaded machine, or the same problem of several servers', () => {
    const { items, state, clock } = gateway()
    const late = (name: string) => `${name} did not answer a health check within 5 s (health.timeout).`
    const tripped = 'Circuit breaker open: 5 of its last 9 calls failed. Next attempt in 3 s.'
    const slow = Array.from({ length: 22 }, (_, n) =>
      server(`s${n}`, { health: 'degraded', reason: n % 2 === 0 ? late(`s${n}`) : tripped, since: 5 + n }),
    )
    const broken = server('broken', { health: 'unhealthy', reason: 'spawn npz ENOENT' })
    const mail = ['a', 'b', 'c'].map((name) => server(name, { health: 'needs-auth', reason: 'Sign in.' }))
    state.servers = [...slow, broken, ...mail]
    const ids = () => items().map(({ id }) => id.replace(/:[0-9a-f]{16}$/, ''))
    const others = ['server:broken', 'server:a', 'server:b', 'server:c']
    expect(ids()).toEqual(['servers', 'servers', ...others])
    expect(items()[0]).toMatchObject({ kind: 'server', severity: 'warning', since: 5, actions: [], link: '/servers' })
    expect(items()[0]?.detail).toContain(late('s0'))
    state.busy = true
    expect(ids()).toEqual(['servers', ...others])
    const [item] = items()
    expect(item?.title).toBe('22 servers do not answer in time, because this machine is overloaded')
    expect(item?.detail).toContain('s0, s1, s2, ')
    // One server more or less is no news.
    state.servers = state.servers.slice(1)
    expect(items()[0]).toMatchObject({ id: item?.id, revision: item?.revision, since: 6 })
    state.busy = false
    clock.advance(59_000)
    expect(ids()).toEqual(['servers', ...others])
    clock.advance(2_000)
    expect(ids()).toEqual(['servers', 'servers', ...others])
    state.servers = slow.slice(0, 2)
    expect(ids()).toEqual(['server:s0', 'server:s1'])
  })

  test('an audit log that cannot be written, was changed, or fails its verification', () => {
    const { items, state } = gateway()
    state.audit = { recording: false, error: 'ENOSPC', changedBeforeStart: 2 }
    expect(items().map(({ id, kind, severity, link }) => [id, kind, severity, link])).toEqual([
      ['audit:outage', 'audit', 'critical', '/audit'],
      ['audit:changed', 'audit', 'critical', '/audit'],
    ])
    const chain = { checkedAt: 4, records: 10, problems: ['1/000000000001.jsonl:7: changed'] }
    const [item] = brokenChain({ ...chain, state: 'broken' })
    expect(item).toMatchObject({ id: 'audit:chain', severity: 'critical', since: 4, detail: chain.problems[0] })
    expect(pathsOf(item!)).toEqual(['audit/chain/verify'])
    expect(brokenChain({ ...chain, state: 'intact' })).toEqual([])
  })

  test('refused tokens and Origins; many are a warning', () => {
    const { items, rejections } = gateway()
    for (let times = 0; times < 12; times++) rejections.count({ code: 'AUTH_REQUIRED', address: '192.0.2.1' })
    rejections.count({ code: 'DENIED_BY_POLICY', detail: 'origin: https://evil.example', address: '192.0.2.9' })
    const found = items()
    expect(found.map(({ id, severity, link }) => [id, severity, link])).toEqual([
      ['rejected:AUTH_REQUIRED', 'warning', '/audit?decision=DENY'],
      ['rejected:origin', 'info', '/audit?decision=DENY'],
    ])
    expect(found[0]?.detail).toContain('192.0.2.1 (12)')
    expect(found[1]?.detail).toContain('https://evil.example')
  })

  test('a failed reload, until one succeeds', () => {
    const { items, history, watch } = gateway()
    let heard = 0
    watch(() => heard++)
    history.add({ at: 3, ok: false, error: 'toolway.yaml:4: unknown key\n4 | servre:', changes: [] })
    expect(heard).toBeGreaterThan(0)
    const [item] = items()
    expect(item).toMatchObject({ id: 'reload', kind: 'reload', since: 3, link: '/config' })
    // Not the line of the file, which may contain a secret.
    expect(item?.detail).not.toContain('servre')
    expect(pathsOf(item!)).toEqual(['config/reload'])
    history.add({ at: 3, ok: false, error: 'invalid:\ntoolway.yaml:4: did you mean `agents`?', changes: [] })
    expect(items()[0]?.detail).toContain('`agents`? The previous')
    const problems = ['port', 'host'].map((key) => ({
      file: 'toolway.yaml',
      line: 1,
      column: 1,
      key,
      message: 'wrong',
    }))
    const { message: error } = new ConfigError([{ ...problems[0]!, excerpt: 'servre' }, problems[1]!])
    history.add({ at: 4, ok: false, error, changes: [] })
    expect(items()[0]?.detail).toContain('toolway.yaml:1:1: port: wrong, and 1 more.')
    expect(items()[0]?.detail).not.toContain('servre')
    history.add({ at: 4, ok: true, error: null, changes: [] })
    expect(items()).toEqual([])
  })

  test('keys that expire within a week or have expired, and a key file that is rejected', async () => {
    const { items, clock } = gateway()
    const key = (id: string, inMs: number) => ({
      ...{ id, hash: `sha256:${'0'.repeat(64)}`, agents: ['*'], admin: false },
      ...{ created: new Date(0).toISOString(), expires: new Date(clock.now() + inMs).toISOString() },
    })
    await changeKeyFile(folder, () => [
      key('soon', 6 * day),
      key('later', 8 * day),
      key('over', -day),
      key('old', -31 * day),
    ])
    const found = items()
    expect(found.map(({ id, severity, link }) => [id, severity, link])).toEqual([
      ['key:soon', 'info', '/keys'],
      ['key:over', 'warning', '/keys'],
    ])
    expect(found.map(pathsOf)).toEqual([['keys/soon/revoke'], ['keys/over/revoke']])
    await writeFile(keyFile(folder), '{"version":1,"keys":[{')
    expect(items()).toMatchObject([{ id: 'key-file', severity: 'critical', link: '/keys' }])
  })

  test('Redis, PostgreSQL and the primary process, while they cannot be reached', () => {
    const { items, state } = gateway()
    state.stores = [
      { name: 'redis', up: false, problem: 'WRONGPASS' },
      { name: 'postgres', up: false },
      { name: 'workers', up: true },
    ]
    expect(items()[0]?.detail).toContain('WRONGPASS')
    expect(items().map(({ id, kind, severity, link }) => [id, kind, severity, link])).toEqual([
      ['store:redis', 'store', 'critical', '/config'],
      ['store:postgres', 'store', 'critical', '/config'],
    ])
  })

  test('a disk with little space left', async () => {
    const { items, state, clock } = gateway()
    state.freeBytes = 10 * 1_048_576
    items()
    await clock.pass(0)
    expect(items()).toMatchObject([{ id: `disk:${folder}`, kind: 'store', severity: 'critical', link: '/config' }])
    state.freeBytes = 1e12
    await clock.pass(30_000)
    items()
    await clock.pass(0)
    expect(items()).toEqual([])
  })
})
