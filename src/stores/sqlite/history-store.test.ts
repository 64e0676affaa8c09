import { join } from 'node:path'
import { expect, test } from 'vitest'
import { temporaryFolder } from '../../../tests/fixtures/folders.ts'
import { systemClock } from '../../core/clock.ts'
import type { StoredCall } from '../../core/history.ts'
import { silentLog } from '../../core/log.ts'
import { openHistoryDatabase } from './history-database.ts'
import { sqliteHistory } from './history-store.ts'

const at = Date.now()
const call: StoredCall = {
  ...{ id: 'c1', parent: null, at, ms: 10, agent: 'dev', principal: 'key:dev', operation: 'call_tool' },
  ...{ server: 'files', name: 'read', outcome: 'answered', code: null, cache: null, steps: [] },
}

test('V12: a gateway that stops before its thread was needed stores its last calls without it', async () => {
  await using folder = await temporaryFolder()
  const bounds = {
    keepMs: 3_600_000,
    maxBytes: 1024 * 1024,
    captures: { keepMs: 3_600_000, maxBytes: 1024 * 1024 },
    startedAt: at,
  }
  // A thread that could not even be loaded.
  const thread = new URL('file:///nonexistent/thread.js')
  await using store = sqliteHistory({ folder: folder.path, thread, ...bounds, clock: systemClock, log: silentLog })
  store.stopping()
  expect(await store.write({ tallies: [], calls: [call], captures: [] })).toBe(true)
  expect(store.trouble()).toBe(undefined)

  const path = join(folder.path, 'history.sqlite')
  using database = openHistoryDatabase({ path, ...bounds, clock: systemClock, say: () => {} })
  const order = { by: 'time', descending: true } as const
  expect(database.calls({ order, limit: 10, counted: [] })?.calls).toMatchObject([{ id: 'c1', name: 'read' }])
})
