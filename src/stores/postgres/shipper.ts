import { hostname } from 'node:os'
import { type ArchiveRecord, archiveNames, type ChainEnd, type Spool } from '../../core/audit-archive.ts'
import type { Clock } from '../../core/clock.ts'
import type { Log } from '../../core/log.ts'
import { epochMs, isoOf, type Postgres, storable, type Transaction } from './connection.ts'
import { makePartition, monthOf } from './retention.ts'

export interface ShipperOptions {
  readonly postgres: Postgres
  readonly spool: Spool
  /** The lane that this process writes to. If undefined, all lanes are copied. */
  lane?(): string | undefined
  readonly clock: Pick<Clock, 'now' | 'monotonic'>
  readonly log: Log
}

/** Records per transaction: small enough not to slow down concurrent calls. */
const recordsPerBatch = 250
/** Another process's lane is copied only if that process has not copied it for this long. */
const abandonedMs = 5_000
/** Errors that a retry does not fix: permission denied, or records of that month in the default partition. */
const permanentErrors = ['42501', '23514']
const maxRecordAgeMs = 3 * 366 * 24 * 60 * 60_000

/** Copies the local log into the database. Only the database stores how far the copy has progressed. */
export class Shipper {
  readonly #options: ShipperOptions
  #chains: Map<string, OwnChain> | undefined
  /** Whether `#chains` is what the database has: not after an outage, when it may have been restored. */
  #sure = false
  #registeredKeys: string | undefined
  readonly #months = new Set<string>()
  /** For each lane of another process, when it was first seen with records to copy. */
  readonly #behindSince = new Map<string, number>()

  constructor(options: ShipperOptions) {
    this.#options = options
  }

  /** Copies all new records. Throws if PostgreSQL or the file system reports an error. */
  async ship(): Promise<void> {
    await this.#known()
    for (const [lane, end] of this.#options.spool.lanes()) {
      const chain = this.#chains?.get(lane)
      if (chain && chain.seq === end.seq && chain.hash === end.hash) this.#behindSince.delete(lane)
      else if (!(await this.#isOthers(lane))) await this.#shipLane(lane)
    }
  }

  /** Forgets the progress: after an outage, the database may have been restored to an earlier state. */
  forget(): void {
    this.#sure = false
    this.#months.clear()
  }

  /** The last record that the database has from a lane; undefined until the database has been reached once. */
  shipped(lane: string): number | undefined {
    return this.#chains?.get(lane)?.seq
  }

  /** How many records of this process are still to be copied; undefined until the database has been reached once. */
  waiting(): number | undefined {
    const { spool, lane: own } = this.#options
    const chains = this.#chains
    if (!chains) return undefined
    const mine = own?.()
    return [...spool.lanes()]
      .filter(([lane]) => mine === undefined || mine === lane)
      .reduce((sum, [lane, { seq }]) => sum + Math.max(0, seq - (chains.get(lane)?.seq ?? 0)), 0)
  }

  async #known(): Promise<Map<string, OwnChain>> {
    if (this.#chains && this.#sure) return this.#chains
    await this.#register()
    const chains = await this.#readChains()
    this.#sure = true
    return chains
  }

  /** Stores this replica's public keys. The log creates its key before there is anything to copy. */
  async #register(): Promise<void> {
    const { postgres, spool } = this.#options
    const keys = spool.publicKeys()
    if (this.#sure && this.#registeredKeys === keys) return
    await postgres.query(
      `INSERT INTO toolway.replicas (id, host, public_keys) VALUES ($1, $2, $3)
       ON CONFLICT (id) DO UPDATE SET host = excluded.host, public_keys = excluded.public_keys, seen_at = now()`,
      [spool.replica, hostname(), keys],
    )
    this.#registeredKeys = keys
  }

  /** Reads the progress: another process may be faster, or a response may have been lost. */
  async #readChains(): Promise<Map<string, OwnChain>> {
    const { postgres, spool } = this.#options
    const rows = await postgres.query<{ lane: string; id: number; epoch: number; seq: string; hash: string }>(
      `SELECT DISTINCT ON (lane) lane, id, epoch, seq, hash FROM toolway.chains WHERE replica = $1
       ORDER BY lane, epoch DESC`,
      [spool.replica],
    )
    this.#chains = new Map(rows.map(({ lane, seq, ...chain }) => [lane, { ...chain, seq: Number(seq) }]))
    return this.#chains
  }

  /** Starts a chain. If another process of this replica was faster, returns that process's chain. */
  async #begin(lane: string, epoch: number): Promise<OwnChain> {
    const { postgres, spool } = this.#options
    const add = 'INSERT INTO toolway.chains (replica, lane, epoch) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING'
    await postgres.query(add, [spool.replica, lane, epoch])
    const chain = (await this.#readChains()).get(lane)
    if (!chain) throw new Error(`the chain for lane ${lane} no longer exists`)
    return chain
  }

  /** Starts a new chain for records that do not continue the existing one, so that they are not lost. */
  #newChain(lane: string, { seq, epoch }: OwnChain): Promise<OwnChain> {
    const { postgres, log } = this.#options
    log.error({ postgres: postgres.where, lane, seq }, chainDiverged)
    return this.#begin(lane, epoch + 1)
  }

  async #isOthers(lane: string): Promise<boolean> {
    const mine = this.#options.lane?.()
    if (mine === undefined || mine === lane) return false
    const now = this.#options.clock.monotonic()
    const first = this.#behindSince.get(lane) ?? now
    this.#behindSince.set(lane, first)
    if (now - first < abandonedMs) return true
    this.#behindSince.delete(lane)
    const before = this.#chains?.get(lane)?.seq
    return (await this.#readChains()).get(lane)?.seq !== before
  }

  async #shipLane(lane: string): Promise<void> {
    const { postgres, spool, log } = this.#options
    await this.#register()
    let chain = (await this.#known()).get(lane) ?? (await this.#begin(lane, 1))
    // Read the end after the chain: read before, it could be behind what another process has copied meanwhile.
    const end = spool.lanes().get(lane)
    if (!end) return
    if (end.seq < chain.seq || (end.seq === chain.seq && end.hash !== chain.hash))
      chain = await this.#newChain(lane, chain)
    while (chain.seq < end.seq) {
      const records = await spool.read(lane, chain.seq, recordsPerBatch)
      const [first] = records
      const last = records.at(-1)
      if (!first || !last) return
      if (chain.seq > 0 && first.seq === chain.seq + 1 && first.prev !== chain.hash) {
        chain = await this.#newChain(lane, chain)
        continue
      }
      if (chain.seq > 0 && first.seq > chain.seq + 1) {
        const missing = { lane, from: chain.seq + 1, to: first.seq - 1 }
        const sentence = 'audit records were removed locally before they were copied to PostgreSQL'
        log.error({ postgres: postgres.where, ...missing }, sentence)
      }
      await this.#makeMonths(records)
      const isAppended = await appendRecords(postgres, chain, records)
      if (isAppended) chain = { ...chain, seq: last.seq, hash: last.hash }
      else chain = (await this.#readChains()).get(lane) ?? (await this.#begin(lane, 1))
      this.#chains?.set(lane, chain)
    }
  }

  async #makeMonths(records: readonly ArchiveRecord[]): Promise<void> {
    const { postgres, clock, log } = this.#options
    for (const { time } of records) {
      const month = monthOf(time)
      // Records with implausible times go to the default partition, so that a wrong clock does not create tables.
      if (this.#months.has(month.table) || Math.abs(time - clock.now()) > maxRecordAgeMs) continue
      await makePartition(postgres, month).catch((error) => {
        if (!permanentErrors.includes((error as { code?: string }).code ?? '')) throw error
        const facts = { postgres: postgres.where, table: month.table, why: (error as Error).message }
        log.warn(facts, 'could not create a monthly table; its records are stored in records_other')
      })
      this.#months.add(month.table)
    }
  }
}

const chainDiverged =
  'the local audit log does not continue the copy in PostgreSQL, because its files were replaced or restored; it is copied as a new chain'

interface OwnChain extends ChainEnd {
  readonly id: number
  readonly epoch: number
}

const nameColumns = archiveNames.join(', ')
const nameTypes = archiveNames.map((name) => `${name} text`).join(', ')

/** Inserts records. All of them are in one JSON parameter, which is fast to write and to parse. */
const insertRecords = `
  INSERT INTO toolway.records
    (chain, seq, time, phase, shown, begin_seq, begin_time, ${nameColumns}, is_error, words, line)
  SELECT $1, seq, time, phase, shown, begin_seq, begin_time, ${nameColumns}, is_error, words, line
  FROM json_to_recordset($2) AS r (
    seq bigint, time timestamptz, phase text, shown boolean, begin_seq bigint, begin_time timestamptz,
    ${nameTypes}, is_error boolean, words text, line text
  )
  ORDER BY seq
  ON CONFLICT DO NOTHING`

const insertCheckpoints = `
  INSERT INTO toolway.checkpoints (chain, seq, time, line)
  SELECT $1, seq, time, line FROM json_to_recordset($2) AS r (seq bigint, time timestamptz, line text)
  ON CONFLICT DO NOTHING`

/**
 * Appends records if the chain in the database still ends there. Otherwise returns false: another process has appended
 * records, or the response to an earlier append was lost. So records are neither duplicated nor skipped.
 */
function appendRecords(postgres: Postgres, end: OwnChain, records: readonly ArchiveRecord[]): Promise<boolean> {
  const { id: chain } = end
  return postgres.transaction(async (client) => {
    const lock = 'SELECT seq, hash FROM toolway.chains WHERE id = $1 FOR UPDATE'
    const [now] = await client.query<{ seq: string; hash: string }>(lock, [chain])
    if (!now || Number(now.seq) !== end.seq || now.hash !== end.hash) return false
    const last = records.at(-1)
    if (!last) return true
    const rows = await rowsOf(client, chain, records)
    await client.query(insertRecords, [chain, JSON.stringify(rows)])
    const signed = rows.filter(({ phase }) => phase === null).map(({ seq, time, line }) => ({ seq, time, line }))
    if (signed.length > 0) await client.query(insertCheckpoints, [chain, JSON.stringify(signed)])
    await client.query('UPDATE toolway.chains SET seq = $2, hash = $3 WHERE id = $1', [chain, last.seq, last.hash])
    return true
  })
}

type Begin = Pick<ArchiveRecord, 'seq'> & { readonly time: string }

/** The rows to insert. Most operations begin and end in one batch; only beginnings from earlier batches are queried. */
async function rowsOf(client: Transaction, chain: number, records: readonly ArchiveRecord[]) {
  const begun = new Map<string, Begin>()
  const ended = new Set<string>()
  for (const { phase, names, seq, time } of records) {
    if (names.call === undefined) continue
    if (phase === 'before') begun.set(names.call, { seq, time: isoOf(time) })
    if (phase === 'after') ended.add(names.call)
  }
  const earlier = [...ended].filter((call) => !begun.has(call))
  const found = earlier.length > 0 ? await endEarlier(client, chain, earlier) : new Map<string, Begin>()
  return records.map(({ seq, time, phase, gap, names, is_error, words, line }) => {
    const { call = '' } = names
    const begin = phase === 'after' ? (begun.get(call) ?? found.get(indexable(call))) : undefined
    return {
      seq,
      time: isoOf(time),
      phase,
      shown: phase === null ? gap : phase === 'after' || !ended.has(call),
      begin_seq: begin?.seq,
      begin_time: begin?.time,
      ...Object.fromEntries(Object.entries(names).map(([name, value]) => [name, columnOf(name, value)])),
      is_error,
      words: storable(words),
      line,
    }
  })
}

/** Marks the stored beginnings of these calls as ended, and returns them. */
async function endEarlier(client: Transaction, chain: number, calls: readonly string[]): Promise<Map<string, Begin>> {
  const begun = await client.query<{ call: string; seq: string; time: string }>(
    `UPDATE toolway.records SET shown = false
     WHERE chain = $1 AND call = ANY($2) AND phase = 'before' AND shown RETURNING call, seq, ${epochMs('time')} AS time`,
    [chain, calls.map(indexable)],
  )
  return new Map(begun.map(({ call, seq, time }) => [call, { seq: Number(seq), time: isoOf(Number(time)) }]))
}

const columnOf = (name: string, value: string): string => (name === 'tool' ? storable(value) : indexable(value))

/** Max length of an indexed value. The log truncates names to this length; forged records must fit as well. */
const maxIndexed = 512

const indexable = (text: string): string => storable(text.slice(0, maxIndexed))
