import type { Log } from '../../core/log.ts'
import { openPinFiles, pinsFolder } from './pin-files.ts'
import type { Pin, RecordedOrigin, ServerPins } from './pin-record.ts'
import {
  type Approved,
  approveIn,
  isUnacknowledged,
  labelOf,
  type PinState,
  type PinsMode,
  type Selection,
  statesOf,
} from './pin-state.ts'

/** The pins on disk, for commands that work without a running gateway. */
export interface OfflinePins {
  readonly servers: readonly string[]
  readonly states: readonly PinState[]
  /** Servers that need an operator's attention as a whole. */
  readonly notes: readonly ServerNote[]
  find(label: string): { readonly server: string; readonly pin: Pin } | undefined
  /** A running gateway applies it within a second. */
  approve(selection: Selection): Promise<readonly Approved[]>
}

export interface ServerNote {
  readonly server: string
  readonly moved?: { readonly from: RecordedOrigin; readonly to: RecordedOrigin }
  readonly lostAt?: number
}

export async function readPins(options: {
  folder: string
  mode: PinsMode
  now: number
  log: Log
}): Promise<OfflinePins> {
  const { mode, now, log } = options
  const files = openPinFiles(pinsFolder(options.folder), log)
  const { records } = await files.load()
  const ordered = [...records].sort((a, b) => (a.server < b.server ? -1 : 1))
  return {
    servers: ordered.map(({ server }) => server),
    states: ordered.flatMap((record) => statesOf(record, mode)),
    notes: ordered.filter(isUnacknowledged).map(noteOf),
    find(label) {
      for (const { server, pins } of ordered) {
        for (const pin of pins.values()) if (labelOf(server, pin.kind, pin.name) === label) return { server, pin }
      }
      return undefined
    },
    async approve(selection) {
      const all: Approved[] = []
      for (const { server } of ordered) {
        if (selection.server !== undefined && selection.server !== server) continue
        await files.update(server, (current) => {
          if (!current) throw new Error(`the pins of ${server} are gone`)
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
  return {
    server,
    ...(from && to && to.at > acknowledged && { moved: { from, to } }),
    ...(distrusted > acknowledged && { lostAt: distrusted }),
  }
}
