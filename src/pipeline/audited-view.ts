import { randomUUID } from 'node:crypto'
import type { View } from '../core/access.ts'
import type { Audit, AuditEnd } from '../core/audit.ts'
import type { Caller } from '../core/call.ts'
import type { Kind } from '../core/entry.ts'
import { endingOf, operations, since, whoOf } from './audit.ts'

/**
 * A view whose listings are written down, and so is asking in vain: what is not found never becomes a call, and would
 * leave no trace otherwise.
 */
export function auditedView(view: View, caller: Caller, log: Audit): View {
  const subject = (kind: Kind) => ({ call: randomUUID(), ...whoOf(caller), kind, write: false })

  const sought = async <T>(kind: Kind, asked: { server?: string; tool: string }, search: () => Promise<T>) => {
    const start = performance.now()
    try {
      return await search()
    } catch (thrown) {
      const what = { operation: operations[kind], ...asked, tool: asked.tool.slice(0, longest) }
      await log.end({ ...subject(kind), ...what, ...endingOf(thrown), latency_ms: since(start) })
      throw thrown
    }
  }

  return {
    ...view,
    page(kind, cursor) {
      const start = performance.now()
      const page = view.page(kind, cursor)
      const listed: AuditEnd = {
        ...subject(kind),
        operation: 'list',
        decision: 'ALLOW',
        is_error: false,
        latency_ms: since(start),
        returned: page.count,
        // About four characters to a token.
        tokens: Math.ceil(page.items.length / 4),
      }
      // A list changes nothing: nobody waits for the record of it.
      log.end(listed)?.catch(ignored)
      return page
    },
    resolve: (kind, spelling) => sought(kind, { tool: spelling }, () => view.resolve(kind, spelling)),
    find: (kind, server, name) => sought(kind, { server, tool: name }, () => view.find(kind, server, name)),
  }
}

/** Spellings come from anybody and may be anything. */
const longest = 500

/** Whoever writes the records tells the log that it cannot. */
const ignored = () => {}
