import { callsPerSecond, compare, p99 } from '../measure/comparison.ts'
import type { Arm, Series } from '../measure/rounds.ts'
import { median } from '../measure/statistics.ts'
import { compared, type Row, without } from '../measure/verdict.ts'
import type { Peer } from '../peers/peer.ts'
import type { Bench } from '../scenario.ts'
import type { ServerEntry } from '../targets/toolway.ts'
import { samplesOf } from './yardstick.ts'

type Front = 'stdio' | 'http'

/** The peers that could be started, and why others could not. */
export interface PeerArms {
  readonly arms: readonly Arm[]
  readonly started: readonly { readonly arm: string; readonly peer: Peer; readonly front: Front }[]
  readonly missing: readonly { readonly arm: string; readonly reason: string }[]
}

const ours: Record<Front, string> = { stdio: 'stdio server, read', http: 'HTTP server, read' }

/** Starts every peer in front of every server that it can be in front of. */
export async function peerArms(
  open: AsyncDisposableStack,
  bench: Bench,
  servers: Record<Front, ServerEntry>,
): Promise<PeerArms> {
  const arms: Arm[] = []
  const started: PeerArms['started'][number][] = []
  const missing: PeerArms['missing'][number][] = []
  for (const peer of bench.peers) {
    for (const front of peer.fronts) {
      const arm = `${peer.name}, ${front} server`
      try {
        bench.note(`starting ${arm}`)
        const { pid, aim } = open.use(await peer.start(servers[front], await bench.folder(`peer-${front}`)))
        arms.push({ name: arm, aim, pids: [pid] })
        started.push({ arm, peer, front })
      } catch (thrown) {
        missing.push({ arm, reason: String(thrown instanceof Error ? thrown.message : thrown).slice(0, 300) })
      }
    }
  }
  return { arms, started, missing }
}

/** Toolway as a multiple of each peer, behind which stands the same server. */
export function peerRows({ started, missing }: PeerArms, many: Series, alone: Series): Row[] {
  const rows = started.flatMap(({ arm, peer, front }): Row[] => {
    const failure = many.failures.get(arm) ?? alone.failures.get(arm)
    if (failure !== undefined) return [without('peers', arm, 'failed', failure)]
    const faster = compare(samplesOf(many, ours[front]), twice(samplesOf(many, arm)), callsPerSecond)
    const slowest = compare(samplesOf(alone, ours[front]), twice(samplesOf(alone, arm)), p99)
    const perSecond = `peer ${Math.round(median(samplesOf(many, arm).map(callsPerSecond)))}/s`
    const tail = `peer ${median(samplesOf(alone, arm).map(p99)).toFixed(3)} ms`
    const least = peer.leastTimes?.[front] ?? 1
    return [
      compared(
        { scenario: 'peers', what: `calls/s against ${arm}`, absolute: perSecond },
        faster,
        { least },
        ' the peer',
      ),
      compared({ scenario: 'peers', what: `p99 against ${arm}`, absolute: tail }, slowest, { most: 1 }, ' the peer'),
    ].map((row) => (peer.note === undefined ? row : { ...row, note: peer.note }))
  })
  return [...rows, ...missing.map(({ arm, reason }) => without('peers', arm, 'skipped', reason))]
}

/** A peer is not measured against itself: its noise is that of the ratios. */
const twice = <T>(samples: T) => [samples, samples] as const
