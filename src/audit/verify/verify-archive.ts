import type { Archive, ArchiveChain } from '../../core/audit-archive.ts'
import { findArchiveMismatch, readReplica } from '../archive/spool.ts'
import { parseRecord, parseSealedLine, signerOf, type Verifier, verifiersOf } from '../record.ts'
import { ChainCheck, type ChainFacts, createProblems, gapBefore, type VerifyProblem } from './chain-check.ts'
import type { LaneReport, VerifyReport } from './verify.ts'

export interface VerifyArchiveOptions {
  readonly archive: Archive
  /** This replica's secret, with which it signed its own records. */
  readonly key?: Buffer | string
  /** Public keys in PEM form. If given, the keys in the database are not trusted. */
  readonly publicKey?: string
  onProgress?(progress: { readonly chain: string; readonly records: number }): void
}

export interface ChainReport
  extends Omit<ChainFacts, 'lanes' | 'torn'>,
    Pick<ArchiveChain, 'replica' | 'host' | 'lane' | 'epoch'> {}

export interface ArchiveReport extends Omit<VerifyReport, 'trust' | 'lanes'> {
  /** Where the keys come from. Keys in the database could have been replaced together with the records. */
  readonly trust: 'public key' | 'keys in the database'
  readonly chains: readonly ChainReport[]
}

/** Verifies all chains of an archive, as `verifyAudit` does for a local log. Safe while replicas append. */
export async function verifyArchive(options: VerifyArchiveOptions): Promise<ArchiveReport> {
  const { archive, key, publicKey } = options
  const problems = createProblems()
  const verifiers = [
    ...(key === undefined ? [] : [signerOf(key)]),
    ...verifiersOf(publicKey ?? (await archive.publicKeys())),
  ]
  const all = await archive.chains()
  const chains: ChainReport[] = []
  for (const chain of all) chains.push(await verifyChain(chain, options, verifiers, problems.add))
  for (const { replica, lane, epoch, ...chain } of all) {
    const next = all.find((other) => other.replica === replica && other.lane === lane && other.epoch === epoch + 1)
    if (!next) continue
    const message = `the log does not continue from record ${chain.seq}: its files were replaced or rolled back to an earlier state`
    problems.add({ kind: 'lane', lane: nameOf(next), message })
  }
  return {
    ok: problems.count === 0,
    trust: publicKey === undefined ? 'keys in the database' : 'public key',
    records: chains.reduce((sum, { records }) => sum + records, 0),
    chains,
    problems: problems.list,
    problemCount: problems.count,
  }
}

/** A chain's display name: host with part of the replica's ID, lane, and the epoch unless it is the first. */
const nameOf = ({ host, replica, lane, epoch }: Pick<ArchiveChain, 'host' | 'replica' | 'lane' | 'epoch'>): string =>
  `${host}-${replica.slice(0, 8)}/${lane}${epoch > 1 ? `-${epoch}` : ''}`

async function verifyChain(
  chain: ArchiveChain,
  { archive, onProgress }: VerifyArchiveOptions,
  verifiers: readonly Verifier[],
  add: (problem: VerifyProblem) => void,
): Promise<ChainReport> {
  const name = nameOf(chain)
  const problem = (found: VerifyProblem) => add({ ...found, lane: name })
  const check = new ChainCheck({ lane: chain.lane, heads: [], verifiers, problem })
  // Read the checkpoints before the records, because records may be added in the meantime.
  const checkpoints = await archive.checkpoints(chain.id)
  const signed = new Map<unknown, string>(checkpoints.map((line) => [parseRecord(line)?.hash, line]))
  let read = 0
  let lastHash: unknown
  for await (const records of archive.records(chain.id)) {
    for (const filed of records) {
      check.line({ bytes: Buffer.from(filed.line), offset: 0, whole: true })
      const record = parseRecord(filed.line)
      lastHash = record?.hash
      signed.delete(lastHash)
      const wrong = record && findArchiveMismatch(record, filed)
      if (!wrong) continue
      const message = `record ${record.seq} is unchanged, but its search index has a different ${wrong}`
      problem({ kind: 'changed', seq: record.seq, message })
    }
    read += records.length
    onProgress?.({ chain: name, records: read })
  }
  const { lanes: _, torn: __, ...facts } = check.end()
  if (facts.last?.seq === chain.seq && lastHash !== chain.hash) {
    problem({ kind: 'changed', seq: chain.seq, message: `record ${chain.seq} was replaced after it was appended` })
  }
  // Retention may have removed more records in the meantime, so read its position again.
  const { removedTo } = (await archive.chains()).find(({ id }) => id === chain.id) ?? chain
  for (const found of endProblems({ ...chain, removedTo }, facts, signed, verifiers)) problem(found)
  return { replica: chain.replica, host: chain.host, lane: chain.lane, epoch: chain.epoch, ...facts }
}

function endProblems(
  chain: ArchiveChain,
  { first, last, removedTo }: Pick<ChainFacts, 'first' | 'last' | 'removedTo'>,
  unseen: ReadonlyMap<unknown, string>,
  verifiers: readonly Verifier[],
): VerifyProblem[] {
  const problems = gapBefore(first, Math.max(removedTo, chain.removedTo))
  const proven = [...unseen.values()].flatMap((line) => {
    const parsed = parseSealedLine(Buffer.from(line))
    if (!parsed.ok || parsed.record.phase !== undefined) return []
    const { hash: _, ...content } = parsed.record
    return verifiers.some((key) => key.id === content.key && key.verifies(content)) ? [content.seq] : []
  })
  const end = Math.max(chain.seq, ...proven)
  const there = last?.seq ?? chain.removedTo
  if (end > there) {
    const message = `the copy ends with record ${there}, but record ${end} existed: the end was deleted`
    problems.push({ kind: 'cut', seq: end, message })
  }
  // Omit gaps in the middle, which the chain check already reports.
  const missing = proven.filter((seq) => seq <= there && !(first && seq > first.seq))
  for (const seq of missing) problems.push({ kind: 'missing', seq, message: `signed record ${seq} is missing` })
  return problems
}

/**
 * Finds records that are in the archive but beyond the end of the local log. Records that retention removed are before
 * that end, so they are not reported. For a lane that was restarted, only its latest epoch is compared; `verifyArchive`
 * reports the restart.
 */
export function compareWithArchive(
  folder: string,
  lanes: readonly Pick<LaneReport, 'lane' | 'last'>[],
  chains: readonly ArchiveChain[],
): VerifyProblem[] {
  const replica = readReplica(folder)
  const own = chains.filter((chain) => chain.replica === replica)
  return own.flatMap(({ lane, epoch, seq }) => {
    if (own.some((other) => other.lane === lane && other.epoch > epoch)) return []
    const last = lanes.find((report) => report.lane === lane)?.last?.seq ?? 0
    if (last >= seq) return []
    const message = `the log ends with record ${last}, but PostgreSQL has a copy of record ${seq}: the log was deleted, truncated or rolled back`
    return [{ kind: 'rolled_back', lane, seq, message } as const]
  })
}
