import type { Config } from '../../config/schema.ts'
import type { Clock } from '../../core/clock.ts'
import { type LaneEnd, readEnds } from './audit-end.ts'
import { type Check, type Finding, ok, problem, warning } from './finding.ts'
import { count, span } from './words.ts'

/** Clocks of two readings on one machine differ by less. */
const toleranceMs = 2_000

export interface AuditCheckOptions {
  readonly command: string
  readonly clock: Clock
}

/** Whether the newest records are as they were written, and not from the future. */
export function auditChecks({ audit, stores }: Config, { command, clock }: AuditCheckOptions): Check[] {
  // Both checks look at the same records: they are read once.
  let reading: Promise<LaneEnd[]> | undefined
  const ends = () => {
    reading ??= readEnds(audit.path, stores.path)
    return reading
  }
  return [
    { name: 'audit.chain', run: async () => chainFindings(await ends(), command) },
    { name: 'clock', run: async () => clockFinding(await ends(), clock.now()) },
  ]
}

function chainFindings(ends: readonly LaneEnd[], command: string): Finding | Finding[] {
  if (ends.length === 0) return ok('nothing has been recorded yet')
  const remedy = `${command} audit verify`
  const findings = ends.flatMap(({ lane, problems }) => {
    const [first] = problems.filter(({ kind }) => kind !== 'found_before')
    const more = problems.length > 1 ? `, and ${problems.length - 1} more` : ''
    if (first) return [problem(`in lane ${lane}: ${first.message}${more}`, remedy)]
    // It was found and written down before: nobody has been at the log since.
    return problems.length > 0 ? [warning(`in lane ${lane}: ${problems[0]?.message}`, remedy)] : []
  })
  if (findings.length > 0) return findings
  const records = ends.reduce((sum, end) => sum + end.records, 0)
  return ok(`the newest ${count(records, 'record')} in ${count(ends.length, 'lane')} are as they were written`)
}

function clockFinding(ends: readonly LaneEnd[], now: number): Finding {
  const latest = ends
    .flatMap(({ last }) => last ?? [])
    .sort()
    .at(-1)
  const time = new Date(now).toISOString()
  if (latest === undefined) return ok(`it is ${time}`)
  const behind = Date.parse(latest) - now
  if (behind <= toleranceMs) return ok(`it is ${time}, after the last record`)
  const message = `it is ${time}, ${span(behind)} before the last audit record: records and expiries go wrong`
  return problem(message, 'sudo timedatectl set-ntp true')
}
