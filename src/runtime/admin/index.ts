import type { AuditQuery } from '../../audit/search/search.ts'
import { marksFolder } from '../../audit/write/head.ts'
import { type AdminDoor, type AdminDoorOptions, createAdminDoor, type OpenDoor } from '../../serve/admin/door.ts'
import type { Admin, AuditAsked } from '../../serve/admin/port.ts'
import { agentViews, matrixOf, whyFor } from './agents.ts'
import { createAuditDesk, createChain } from './audit-queries.ts'
import { createCalls, tryTool } from './calls.ts'
import { createConfiguration } from './config.ts'
import type { AdminParts } from './context.ts'
import { createFigures } from './figures.ts'
import { createOverview } from './overview.ts'
import { createServers } from './servers.ts'
import { createTools } from './tools.ts'

/** Puts the admin API together from the parts of a gateway. */
function createAdmin(parts: AdminParts): Admin & AsyncDisposable {
  const { audit, calls: recent, present, clock, log } = parts
  const figures = createFigures(parts)
  const servers = createServers(parts, figures)
  const tools = createTools(parts, figures)
  const desk = createAuditDesk({
    // The log stays where it was opened, whatever the configuration says since.
    folder: present().loaded.config.audit.path,
    marks: marksFolder(present().loaded.config.stores.path, present().loaded.config.audit.path),
    flushed: () => audit.flushed(),
    ...(parts.archive && { archive: parts.archive }),
    clock,
  })
  const chain = createChain({ desk, auditKey: parts.auditKey, clock, log })
  const calls = createCalls(parts, desk)
  const configuration = createConfiguration(parts)
  return {
    overview: createOverview(parts, figures),
    series: figures.series,
    stats: figures.stats,
    servers: servers.list,
    server: servers.one,
    control: servers.control,
    signIn: servers.signIn,
    signedIn: servers.signedIn,
    tools: tools.list,
    tool: tools.one,
    tryTool: (...asked) => tryTool(parts, ...asked),
    calls: calls.list,
    call: calls.one,
    audit: (asked) => desk.search(queryOf(asked)),
    chain: chain.state,
    verifyChain: chain.verify,
    agents: () => agentViews(parts),
    matrix: (asked) => matrixOf(parts, asked),
    why: (caller, asked) => whyFor(parts, caller, asked),
    config: configuration.view,
    lastReload: configuration.last,
    reload: configuration.reload,
    onCalls: recent.subscribe,
    onReload: configuration.onReload,
    [Symbol.asyncDispose]: () => desk[Symbol.asyncDispose](),
  }
}

/** The words of the API in those of the search; what is not asked for must not be there at all. */
function queryOf({ from, to, cursor, decision, limit, ...asked }: AuditAsked): AuditQuery & { readonly limit: number } {
  const wanted = { ...asked, since: from, until: to, before: cursor, decision: decision?.toUpperCase() }
  return { ...Object.fromEntries(Object.entries(wanted).filter(([, value]) => value !== undefined)), limit }
}

/** What the gateway knows before its door is open. */
export interface PeopleOptions
  extends Omit<AdminParts, 'sessions' | 'endpoint'>,
    Pick<AdminDoorOptions, 'authenticate' | 'config' | 'metrics' | 'folder'> {}

/** Everything for people, to be opened with the HTTP door and closed with it. */
export const forPeople =
  (options: PeopleOptions) =>
  ({ url, port, hosts, admit, bodies, sessions, chat }: OpenDoor): AdminDoor => {
    const admin = createAdmin({ ...options, sessions, endpoint: () => url })
    const door = createAdminDoor({ ...options, admin, admit, bodies, port, hosts, chat })
    return {
      handle: door.handle,
      [Symbol.dispose]() {
        door[Symbol.dispose]()
        // A thread that reads the audit log must not hold anybody up.
        void admin[Symbol.asyncDispose]()
      },
    }
  }
