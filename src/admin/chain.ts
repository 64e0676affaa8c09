import type { Clock } from '../core/clock.ts'
import type { Log } from '../core/log.ts'
import type { ChainView } from '../serve/admin/contract.ts'
import type { VerifyProblem } from '../telemetry/audit/problem.ts'
import type { AuditDesk } from './audit-desk.ts'

/** Whether the audit log is as it was written, as far as somebody wanted to know. */
export interface Chain {
  state(): ChainView
  /** Checks it from its beginning, unless that is under way. */
  verify(): ChainView
}

interface ChainOptions {
  readonly desk: Pick<AuditDesk, 'verify'>
  auditKey(): Promise<string>
  readonly clock: Clock
  readonly log: Log
}

export function createChain({ desk, auditKey, clock, log }: ChainOptions): Chain {
  let view: ChainView = { state: 'unknown', checkedAt: null, records: null, problems: [] }

  const check = async () => {
    const { ok, records, problems, problemCount } = await desk.verify(await auditKey())
    const more = problemCount - problems.length
    const told = [...problems.map(sentenceOf), ...(more > 0 ? [`and ${more} more`] : [])]
    view = { state: ok ? 'intact' : 'broken', checkedAt: clock.now(), records, problems: told }
  }

  return {
    state: () => view,
    verify() {
      if (view.state === 'checking') return view
      const before = view
      view = { ...before, state: 'checking' }
      check().catch((cause) => {
        log.error({ cause }, 'The audit log could not be checked')
        view = { ...before, problems: ['It could not be checked: the log of the gateway says why.'] }
      })
      return view
    },
  }
}

/** `1/000000000001.jsonl:7: …` */
function sentenceOf({ lane, file, line, message }: VerifyProblem): string {
  const place = [lane, file].filter((part) => part !== undefined).join('/')
  return place === '' ? message : `${place}${line === undefined ? '' : `:${line}`}: ${message}`
}
