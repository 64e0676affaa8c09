import type { Log } from '../../core/log.ts'
import { openPinFiles, pinsFolder } from './pin-files.ts'
import type { RecordedOrigin, ServerPins } from './pin-record.ts'
import {
  type Approved,
  approveIn,
  findPin,
  isUnacknowledged,
  type PinsMode,
  type Selection,
  statesOf,
} from './pin-state.ts'

export type OfflinePins = Awaited<ReturnType<typeof readPins>>

export interface ServerNote {
  readonly server: string
  readonly moved?: { readonly from: RecordedOrigin; readonly to: RecordedOrigin }
  readonly lostAt?: number
}

/** Reads the pins from disk, for commands that work without a running gateway. */
export async function readPins({ folder, mode, now, log }: { folder: string; mode: PinsMode; now: number; log: Log }) {
  const files = openPinFiles(pinsFolder(folder), log)
  const { records } = await files.load()
  const ordered = [...records].sort((a, b) => (a.server < b.server ? -1 : 1))
  return {
    servers: ordered.map(({ server }) => server),
    states: ordered.flatMap((record) => statesOf(record, mode)),
    /** Servers that need an operator's attention as a whole. */
    notes: ordered.filter(isUnacknowledged).map(noteOf),
    find: (label: string) => findPin(ordered, label),
    /** Approves definitions on disk. A running gateway applies the approval within a second. */
    async approve(selection: Selection): Promise<readonly Approved[]> {
      const all: Approved[] = []
      for (const { server } of ordered) {
        if (selection.server !== undefined && selection.server !== server) continue
        await files.update(server, (current) => {
          if (!current) throw new Error(`the pins of ${server} were removed`)
          const { record, approved } = approveIn(current, selection, now)
          all.push(...approved)
          return record
        })
      }
      return all
    },
  }
}

function noteOf({ server, origins, distrusted, acknowledged }: ServerPins): ServerNote {
  const [from, to] = origins.slice(-2)
  const moved = from && to && to.at > acknowledged ? { from, to } : undefined
  return { server, moved, lostAt: distrusted > acknowledged ? distrusted : undefined }
}
