import { hostname } from 'node:os'
import type { ArchiveRecord, ChainEnd, Spool } from '../../core/audit-archive.ts'
import type { Clock } from '../../core/clock.ts'
import { append } from './append.ts'
import type { Postgres } from './connection.ts'
import { makePartition, monthOf } from './retention.ts'

/** Copies the local log into the database. Only the database stores how far the copy has progressed. */
export interface Shipper {
  /** Copies all new records. Throws if PostgreSQL or the file system reports an error. */
  ship(): Promise<void>
  /** Forgets the progress: after an outage, the database may have been restored to an earlier state. */
  forget(): void
  /** The last record that the database has from a lane; undefined until the database has been reached once. */
  shipped(lane: string): number | undefined
  /** How many records are still to be copied; undefined until the database has been reached once. */
  waiting(): number | undefined
}

export interface ShipperOptions {
  readonly postgres: Postgres
  readonly spool: Spool
  /** The lane that this process writes to. If undefined, all lanes are copied. */
  lane?(): string | undefined
  readonly clock: Pick<Clock, 'now' | 'monotonic'>
  /** Called if the local log does not continue the chain in the database. */
  diverged(facts: { readonly lane: string; readonly seq: number }): void
  /** Called if records were removed from the local log before they were copied. */
  missing(facts: { readonly lane: string; readonly from: number; readonly to: number }): void
  /** Called if a monthly partition cannot be created. Its records go to the default partition. */
  unpartitioned(facts: { readonly table: string; readonly why: string }): void
}

/** Records per transaction: small enough not to slow down concurrent calls. */
const batchSize = 250
/** Another process's lane is copied only if that process has not copied it for this long. */
const abandonedMs = 5_000

export function createShipper({ postgres, spool, lane: own, clock, ...report }: ShipperOptions): Shipper {
  let chains: Map<string, OwnChain> | undefined
  let sure = false
  let keys: string | undefined
  const months = new Set<string>()
  /** For each lane of another process, when it was first seen with records to copy. */
  const since = new Map<string, number>()

  const known = async (): Promise<Map<string, OwnChain>> => {
    if (chains && sure) return chains
    await introduced()
    chains = await ownChains(postgres, spool.replica)
    sure = true
    return chains
  }

  /** Registers this replica with its public keys. The log creates its key before there is anything to copy. */
  const introduced = async () => {
    const now = spool.publicKeys()
    if (sure && keys === now) return
    await registerReplica(postgres, spool.replica, now)
    keys = now
  }

  const begin = async (lane: string, epoch: number): Promise<OwnChain> => {
    const chain = await beginChain(postgres, spool.replica, lane, epoch)
    chains?.set(lane, chain)
    return chain
  }

  const chainOf = async (lane: string): Promise<OwnChain> => (await known()).get(lane) ?? (await begin(lane, 1))

  /** Starts a new chain for records that do not continue the existing one, so that they are not lost. */
  const newChain = (lane: string, chain: OwnChain) => {
    report.diverged({ lane, seq: chain.seq })
    return begin(lane, chain.epoch + 1)
  }

  const isOthers = async (lane: string): Promise<boolean> => {
    const mine = own?.()
    if (mine === undefined || mine === lane) return false
    const now = clock.monotonic()
    const first = since.get(lane) ?? now
    since.set(lane, first)
    if (now - first < abandonedMs) return true
    since.delete(lane)
    const before = chains?.get(lane)?.seq
    chains = await ownChains(postgres, spool.replica)
    return chains.get(lane)?.seq !== before
  }

  const shipLane = async (lane: string) => {
    await introduced()
    let chain = await chainOf(lane)
    // Read the end after the chain: read before, it could be behind what another process has copied meanwhile.
    const end = spool.lanes().get(lane)
    if (!end) return
    if (end.seq < chain.seq || (end.seq === chain.seq && end.hash !== chain.hash)) chain = await newChain(lane, chain)
    while (chain.seq < end.seq) {
      const records = await spool.read(lane, chain.seq, batchSize)
      const [first] = records
      if (!first) return
      if (chain.seq > 0 && first.seq === chain.seq + 1 && first.prev !== chain.hash) {
        chain = await newChain(lane, chain)
        continue
      }
      if (chain.seq > 0 && first.seq > chain.seq + 1) report.missing({ lane, from: chain.seq + 1, to: first.seq - 1 })
      await makeMonths(records)
      chain = (await append(postgres, chain.id, chain, records)) ? after(chain, records) : await moved(lane)
      chains?.set(lane, chain)
    }
  }

  /** Reads the progress from the database, because another process was faster or a response was lost. */
  const moved = async (lane: string): Promise<OwnChain> => {
    chains = await ownChains(postgres, spool.replica)
    return chainOf(lane)
  }

  const makeMonths = async (records: readonly ArchiveRecord[]) => {
    for (const { time } of records) {
      const month = monthOf(time)
      // Records with implausible times go to the default partition, so that a wrong clock does not create tables.
      if (months.has(month.table) || Math.abs(time - clock.now()) > maxAge) continue
      await makePartition(postgres, month).catch((error) => {
        if (!permanentErrors.includes((error as { code?: string }).code ?? '')) throw error
        report.unpartitioned({ table: month.table, why: (error as Error).message })
      })
      months.add(month.table)
    }
  }

  return {
    async ship() {
      await known()
      for (const [lane, end] of spool.lanes()) {
        const chain = chains?.get(lane)
        if (chain && chain.seq === end.seq && chain.hash === end.hash) since.delete(lane)
        else if (!(await isOthers(lane))) await shipLane(lane)
      }
    },
    forget() {
      sure = false
      months.clear()
    },
    shipped: (lane) => chains?.get(lane)?.seq,
    waiting() {
      if (!chains) return undefined
      const mine = own?.()
      let records = 0
      for (const [lane, { seq }] of spool.lanes()) {
        if (mine === undefined || mine === lane) records += Math.max(0, seq - (chains.get(lane)?.seq ?? 0))
      }
      return records
    },
  }
}

/** Errors that a retry does not fix: permission denied, or records of that month in the default partition. */
const permanentErrors = ['42501', '23514']

const maxAge = 3 * 366 * 24 * 60 * 60_000

function after(chain: OwnChain, records: readonly ArchiveRecord[]): OwnChain {
  const last = records.at(-1) as ArchiveRecord
  return { ...chain, seq: last.seq, hash: last.hash }
}

interface OwnChain extends ChainEnd {
  readonly id: number
  readonly epoch: number
}

/** Stores this replica's public keys, which verify its signatures. */
async function registerReplica(postgres: Postgres, replica: string, publicKeys: string): Promise<void> {
  await postgres.query(
    `INSERT INTO toolway.replicas (id, host, public_keys) VALUES ($1, $2, $3)
     ON CONFLICT (id) DO UPDATE SET host = excluded.host, public_keys = excluded.public_keys, seen_at = now()`,
    [replica, hostname(), publicKeys],
  )
}

async function ownChains(postgres: Postgres, replica: string): Promise<Map<string, OwnChain>> {
  const rows = await postgres.query<{ lane: string; id: number; epoch: number; seq: string; hash: string }>(
    `SELECT DISTINCT ON (lane) lane, id, epoch, seq, hash FROM toolway.chains WHERE replica = $1
     ORDER BY lane, epoch DESC`,
    [replica],
  )
  return new Map(rows.map(({ lane, seq, ...chain }) => [lane, { ...chain, seq: Number(seq) }]))
}

/** Starts a chain. If another process of this replica was faster, returns that process's chain. */
async function beginChain(postgres: Postgres, replica: string, lane: string, epoch: number): Promise<OwnChain> {
  await postgres.query('INSERT INTO toolway.chains (replica, lane, epoch) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING', [
    replica,
    lane,
    epoch,
  ])
  const chain = (await ownChains(postgres, replica)).get(lane)
  if (!chain) throw new Error(`the chain for lane ${lane} no longer exists`)
  return chain
}
