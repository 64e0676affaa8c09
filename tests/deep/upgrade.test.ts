import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { archiveFaults } from '../e2e/fleet/archive.ts'
import { type Outcome, startLoad } from '../e2e/fleet/load.ts'
import { startBalancer } from '../fixtures/balancer.ts'
import { type Command, startCommand } from '../fixtures/command.ts'
import { startCounted } from '../fixtures/counted-server.ts'
import { missing } from '../fixtures/debian.ts'
import { openFleetParts } from '../fixtures/fleet.ts'
import { type Folder, temporaryFolder } from '../fixtures/folders.ts'
import { ask } from '../fixtures/postgres.ts'
import { toolwayMain } from '../fixtures/programs.ts'
import { until } from '../fixtures/until.ts'

const root = join(import.meta.dirname, '../..')
/** The commit of version 0.1.0. */
const oldVersion = 'a1718dd'

const inHistory = spawnSync('git', ['cat-file', '-e', `${oldVersion}^{commit}`], { cwd: root }).status === 0
const why = inHistory ? missing('redis-server') : `commit ${oldVersion} is not in this clone`

/** The program of 0.1.0, from the history of this repository, with the same dependencies. */
function unpackOldVersion({ path }: Folder): string {
  const files = execFileSync('git', ['archive', oldVersion], { cwd: root, maxBuffer: 2 ** 30 })
  const folder = join(path, 'toolway-0.1.0')
  mkdirSync(folder)
  execFileSync('tar', ['x', '-C', folder], { input: files })
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'))
  return join(folder, 'src/cli/main.ts')
}

interface Replica {
  readonly folder: Folder
  command: Command
}

/** Calls that PostgreSQL has other than once, by their mark. */
async function notOnce(database: string, marks: readonly string[]): Promise<readonly string[]> {
  const rows = await ask<{ words: string }>(
    database,
    `SELECT b.words FROM toolway.records r
     JOIN toolway.records b ON b.chain = r.chain AND b.seq = r.begin_seq WHERE r.phase = 'after'`,
  )
  const counts = new Map<string, number>()
  for (const { words } of rows)
    for (const [mark] of words.matchAll(/load[\w-]*\./g)) counts.set(mark, (counts.get(mark) ?? 0) + 1)
  return marks.filter((mark) => counts.get(mark) !== 1)
}

describe.skipIf(why !== undefined)(`V25: replicas of 0.1.0${why === undefined ? '' : ` (skipped: ${why})`}`, () => {
  test('B10, F11, G3: replaced by this version one after the other, and one back again, under load: no session and no record is lost', async () => {
    await using open = new AsyncDisposableStack()
    const old = unpackOldVersion(open.use(await temporaryFolder()))
    const counted = open.use(await startCounted())
    const mcpServers = { counted: { type: 'http', url: counted.url } }
    const { config, database, token } = await openFleetParts(open, {
      audit: { path: './audit', sync: 'all' },
      mcpServers,
    })
    const start = async (folder: Folder, main: string, port = '0'): Promise<Replica> => {
      const command = open.use(await startCommand(config, { folder, main, words: ['--port', port] }))
      return { folder, command }
    }
    const folders = [open.use(await temporaryFolder()), open.use(await temporaryFolder())]
    const replicas = await Promise.all(folders.map((folder) => start(folder, old)))
    const balancer = open.use(await startBalancer(replicas.map(({ command }) => command.url)))
    const call = (mark: string) => ({ name: 'counted__look', arguments: { key: mark } })
    const load = await startLoad({ url: balancer.url, token }, { call, retry: true })
    const stops: { from: number; to: number }[] = []
    await load.more(100)
    /** Only this version writes marks. */
    const upgraded = () => folders.map(({ path }) => existsSync(join(path, 'state/audit-marks')))
    expect(upgraded()).toEqual([false, false])
    for (const [index, main] of [
      [0, toolwayMain],
      [1, toolwayMain],
      [0, old],
    ] as const) {
      const { folder, command } = replicas[index] as Replica
      // As docs/operations/upgrade.md says.
      balancer.without(command.url)
      const from = performance.now()
      const { code, survivors } = await command.stop('SIGTERM')
      stops.push({ from, to: performance.now() })
      expect({ code, survivors }).toEqual({ code: 0, survivors: [] })
      await load.more(100)
      replicas[index] = await start(folder, main, new URL(command.url).port)
      balancer.again(command.url)
      // Both versions serve side by side, and each gets requests about the other's sessions.
      await load.more(300)
    }
    expect(upgraded()).toEqual([true, true])
    const outcomes = await load.stop()
    console.info(`${outcomes.length} calls, half of them in ${load.sessions.length} sessions`)
    const failed = outcomes.filter(({ failure }) => failure !== undefined)
    // A connection that is opened just as a replica stops may break; the other replica cannot know what became of it.
    const isBroken = ({ failure, begun, ended }: Outcome) =>
      failure?.startsWith('tools/call: HTTP 502') && stops.some(({ from, to }) => begun <= to && ended >= from)
    console.info(`${failed.length} connections broke`)
    expect(failed.filter((outcome) => !isBroken(outcome))).toEqual([])
    expect(failed.length).toBeLessThanOrEqual(stops.length)
    const lastStop = Math.max(...stops.map(({ to }) => to))
    const goOn = new Set(outcomes.filter(({ begun }) => begun > lastStop).map(({ session }) => session))
    expect(load.sessions.filter((session) => !goOn.has(session))).toEqual([])
    const marks = outcomes.filter(({ failure }) => failure === undefined).map(({ mark }) => mark)
    expect(marks.filter((mark) => counted.counts.get(mark) !== 1)).toEqual([])
    const recorded = async () => (await notOnce(database, marks)).length === 0
    await until(recorded, { what: 'each call in PostgreSQL, exactly once' }).catch(() => {})
    expect(await notOnce(database, marks)).toEqual([])
    const [, { folder, command }] = replicas as [Replica, Replica]
    expect(await archiveFaults(database, command.configFile as string, folder.path)).toEqual([])
  })
})
