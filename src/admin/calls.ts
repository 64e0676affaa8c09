import type { Caller } from '../core/call.ts'
import type { CallDetail, CallView } from '../serve/admin/contract.ts'
import type { CallsAsked } from '../serve/admin/port.ts'
import type { AuditDesk } from './audit-desk.ts'
import type { AdminParts } from './parts.ts'

/** The latest calls, as far as somebody may see them: admins all of them, others those of their agent. */
export interface Calls {
  list(caller: Caller, asked: CallsAsked): readonly CallView[]
  one(caller: Caller, id: string): Promise<CallDetail | undefined>
}

export function createCalls({ calls, log }: AdminParts, desk: AuditDesk): Calls {
  return {
    list(caller, { limit, ...filter }) {
      if (caller.admin) return calls.list(filter, limit)
      if (filter.agent !== undefined && filter.agent !== caller.agent) return []
      return calls.list({ ...filter, agent: caller.agent }, limit)
    },
    async one(caller, id) {
      const found = calls.find(id)
      const maySee = ({ agent }: CallView) => caller.admin || agent === caller.agent
      if (!found || !maySee(found)) return undefined
      const audit = caller.admin ? await recordsOf(id) : none
      return { ...found, children: found.children.filter(maySee), audit }
    },
  }

  /** A log that cannot be searched hides its records, and not the call. */
  async function recordsOf(id: string): Promise<CallDetail['audit']> {
    try {
      return await desk.recordsOf(id)
    } catch (cause) {
      log.warn({ cause }, 'The audit records of a call could not be found')
      return none
    }
  }
}

const none: CallDetail['audit'] = { begin: null, end: null }
