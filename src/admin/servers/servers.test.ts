import { expect, test } from 'vitest'
import { createManualClock } from '../../../tests/fixtures/clock.ts'
import type { AuditBegin, AuditEnd } from '../../core/audit.ts'
import { callOf } from '../../core/call.fixture.ts'
import { Cluster, type ClusterOptions } from '../../runtime/cluster.ts'
import type { AdminContext } from '../context.ts'
import type { VisibleFigures } from '../overview/figures.ts'
import { createServersAdmin } from './servers.ts'

const operator = { ...callOf().caller, principal: 'token', admin: true }

interface TestServer {
  readonly health?: string
  readonly paused?: boolean
  readonly disabled?: boolean
  refresh?(): Promise<void>
}

function openServers(servers: Readonly<Record<string, TestServer>>) {
  const records: (AuditBegin | AuditEnd)[] = []
  const keep = (event: AuditBegin | AuditEnd) => void records.push(event)
  const clock = createManualClock()
  const of = ([name, { paused = false, refresh = async () => {} }]: [string, TestServer]) =>
    [name, { server: { name, control: { paused }, kinds: () => new Map(), refresh } }] as const
  const generation = {
    servers: new Map(Object.entries(servers).map(of)),
    loaded: { config: { mcpServers: servers } },
    catalog: {
      summaries: () => Object.entries(servers).map(([name, { health = 'healthy' }]) => ({ name, status: { health } })),
    },
  }
  const audit = { begin: keep, end: keep }
  const cluster = new Cluster({ current: () => generation } as unknown as ClusterOptions)
  const context = { audit, clock, cluster, current: () => generation } as unknown as AdminContext
  return { admin: createServersAdmin(context, {} as VisibleFigures), records, clock }
}

test('V9: all servers that are turned on are refreshed, each audited; those that failed are named', async () => {
  const { admin, records } = openServers({
    ...{ files: {}, broken: { health: 'unhealthy' }, locked: { health: 'needs-auth' } },
    ...{ off: { paused: true }, disabled: { disabled: true } },
  })
  expect(await admin.refreshServers(operator)).toEqual({ servers: 3, failed: ['broken', 'locked'], running: 0 })
  const ended = records.filter((record) => 'decision' in record)
  expect(ended.map(({ operation, server }) => `${operation} ${server}`).toSorted()).toEqual([
    ...['refresh_server broken', 'refresh_server files', 'refresh_server locked'],
  ])
})

test('V9: refreshing all servers starts only a few at a time, and does not wait for slow ones for ever', async () => {
  let started = 0
  const never = () => {
    started++
    return new Promise<void>(() => {})
  }
  const names = Array.from({ length: 20 }, (_, index) => `s${index}`)
  const { admin, clock } = openServers(Object.fromEntries(names.map((name) => [name, { refresh: never }])))
  const done = admin.refreshServers(operator)
  await expect.poll(() => started).toBe(8)
  await clock.advance(15_000)
  expect(await done).toEqual({ servers: 20, failed: [], running: 20 })
  expect(started).toBe(8)
})
