import { randomUUID } from 'node:crypto'
import type { Page, View } from '../core/access.ts'
import type { Audit, AuditSubject } from '../core/audit.ts'
import type { Caller } from '../core/call.ts'
import type { Kind } from '../core/entry.ts'
import { ToolwayError } from '../core/errors.ts'
import { endingOf, noteOf, operations, since, whoOf } from './audit.ts'
import type { Refusals } from './refusals.ts'

/** What somebody asked of a view. */
type Asked = Pick<AuditSubject, 'operation' | 'kind' | 'server' | 'tool'>

/**
 * A view whose listings are written down, and so is asking in vain: what is not found never becomes a call, and would
 * leave no trace otherwise. Whoever asks in vain too often is told so and counted (B7).
 */
export function auditedView(view: View, caller: Caller, log: Audit, refusals: Refusals): View {
  const subject = (asked: Asked) => ({ call: randomUUID(), ...whoOf(caller), ...asked, write: false })

  const inVain = (asked: Asked, thrown: unknown, start: number) => {
    // A server that cannot be reached is not what somebody may not have.
    const note = ToolwayError.from(thrown).kind.retryable ? {} : noteOf(caller, whoOf(caller), refusals)
    // Spellings come from anybody and may be anything.
    return log.end({ ...subject(asked), brief: true, ...endingOf(thrown), ...note, latency_ms: since(start) })
  }

  const sought = <T>(kind: Kind, asked: { server?: string; tool: string }, search: Promise<T>): Promise<T> => {
    const start = performance.now()
    return search.catch(async (thrown) => {
      await inVain({ operation: operations[kind], kind, ...asked }, thrown, start)
      throw thrown
    })
  }

  const listed = (kind: Kind, cursor: string | undefined, start: number): Page => {
    try {
      return view.page(kind, cursor)
    } catch (thrown) {
      inVain({ operation: 'list', kind }, thrown, start)?.catch(ignored)
      throw thrown
    }
  }

  return {
    ...view,
    page(kind, cursor) {
      const start = performance.now()
      const page = listed(kind, cursor, start)
      refusals.settle()
      const shown = { decision: 'ALLOW', is_error: false, latency_ms: since(start), returned: page.count } as const
      // A list changes nothing: nobody waits for the record of it. About four characters to a token.
      log
        .end({ ...subject({ operation: 'list', kind }), ...shown, tokens: Math.ceil(page.items.length / 4) })
        ?.catch(ignored)
      return page
    },
    resolve: (kind, spelling, wait) => sought(kind, { tool: spelling }, view.resolve(kind, spelling, wait)),
    find: (kind, server, name, wait) => sought(kind, { server, tool: name }, view.find(kind, server, name, wait)),
  }
}

/** Whoever writes the records tells the log that it cannot. */
const ignored = () => {}
