import { type ArchiveRecord, archiveNames, type ChainEnd } from '../../core/audit-archive.ts'
import { epochMs, type Postgres, type Transaction } from './connection.ts'

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
 * Appends records if the chain in the database ends at `end`. Otherwise returns false: another process has appended
 * records, or the response to an earlier append was lost. So records are neither duplicated nor skipped.
 */
export function append(
  postgres: Postgres,
  chain: number,
  end: ChainEnd,
  records: readonly ArchiveRecord[],
): Promise<boolean> {
  return postgres.transaction(async (client) => {
    const [now] = await client.query<{ seq: string; hash: string }>(
      'SELECT seq, hash FROM toolway.chains WHERE id = $1 FOR UPDATE',
      [chain],
    )
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

interface Begin {
  readonly seq: number
  readonly time: string
}

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

/** The latest time that both JavaScript's ISO format and PostgreSQL can represent. */
const latest = Date.UTC(9999, 11, 31)

export const isoOf = (time: number): string => new Date(Math.min(Math.max(time, 0), latest)).toISOString()

/** Replaces NUL and lone surrogates, which PostgreSQL does not accept. Search text is converted in the same way. */
export const storable = (text: string): string => text.replaceAll('\0', '\ufffd').toWellFormed()

/** Max length of an indexed value. The log truncates names to this length; forged records must fit as well. */
const maxIndexed = 512

const indexable = (text: string): string => storable(text.slice(0, maxIndexed))
