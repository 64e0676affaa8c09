import { startBalancer } from '../../fixtures/balancer.ts'
import { type Command, startCommand } from '../../fixtures/command.ts'
import { openFleetParts } from '../../fixtures/fleet.ts'
import { type Folder, temporaryFolder } from '../../fixtures/folders.ts'
import { rawSession } from '../../fixtures/raw-http.ts'
import { askRedis } from '../../fixtures/redis.ts'
import { startToolway } from '../../fixtures/toolway.ts'
import { allArrived, archiveFaults } from './archive.ts'
import { type Outcome, startLoad } from './load.ts'

export interface Kills {
  readonly answered: number
  /** Calls that were lost with the replica that they were at. */
  readonly lost: readonly Outcome[]
  /** Calls that failed although they were nobody's who was killed. */
  readonly unexplained: readonly Outcome[]
  /** What is wrong with the audit log of all. */
  readonly faults: readonly unknown[]
}

interface Replica {
  readonly folder: Folder
  readonly command: Command
  /** What ids of its sessions begin with. */
  readonly name: string
}

const replicaCount = 3

/**
 * One of three replicas is killed and started again on its state, so many times, while 16 callers call: at least so many
 * calls before it is killed, while it is gone, and after it is back.
 */
export async function killUnderLoad(times: number, { calls = 100, pauseMs = 0 } = {}): Promise<Kills> {
  await using open = new AsyncDisposableStack()
  const { redis, config, database, token } = await openFleetParts(open, { audit: { path: './audit', sync: 'all' } })
  const start = async (folder: Folder, port = '0'): Promise<Replica> => {
    const command = open.use(await startCommand(config, { folder, words: ['--port', port] }))
    const { headers } = await rawSession({ url: command.url, token })
    return { folder, command, name: headers['mcp-session-id']?.split('.')[0] ?? '' }
  }
  const folders = Array.from({ length: Math.min(times, replicaCount) }, temporaryFolder)
  const replicas = await Promise.all(folders.map(async (folder) => start(open.use(await folder))))
  // Those that are never killed run in this process.
  const others = Array.from({ length: replicaCount - replicas.length }, () => startToolway(config))
  const safe = (await Promise.all(others)).map((toolway) => open.use(toolway))
  const urls = [...replicas.map(({ command }) => command.url), ...safe.map(({ url }) => url)]
  const balancer = open.use(await startBalancer(urls))
  const load = await startLoad({ url: balancer.url, token }, { pauseMs })
  const holders = (sessions: readonly string[]) =>
    askRedis(redis, async (client) => {
      const held = new Map<string, string | null>()
      for (const session of sessions)
        held.set(session, await client.hget(`toolway:{fleet}:session:${session}`, 'holder'))
      return held
    })
  const lost: Outcome[] = []
  const unexplained: Outcome[] = []
  await load.more(calls)
  for (let time = 0; time < times; time++) {
    const index = time % replicas.length
    const { folder, command, name } = replicas[index] as Replica
    const held = await holders(load.sessions)
    const before = load.outcomes.length
    const killed = performance.now()
    await command.stop('SIGKILL')
    const gone = performance.now()
    // It is still in the balancer: whoever comes to it is refused, and sent to the next one.
    await load.more(calls)
    // At the same address, and under another name.
    replicas[index] = await start(folder, new URL(command.url).port)
    await load.more(calls)
    const itsOwn = ({ mark, session = '', begun, ended }: Outcome) =>
      begun <= gone && ended >= killed && (balancer.way(mark) === command.url || held.get(session) === name)
    for (const outcome of load.outcomes.slice(before)) {
      if (outcome.failure !== undefined) (itsOwn(outcome) ? lost : unexplained).push(outcome)
    }
  }
  const outcomes = await load.stop()
  await allArrived(database, outcomes)
  const [{ folder, command }] = replicas as [Replica]
  const faults = await archiveFaults(database, command.configFile as string, folder.path)
  return { answered: outcomes.length - lost.length - unexplained.length, lost, unexplained, faults }
}
