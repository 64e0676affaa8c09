import type { Config } from '../config/schema.ts'
import type { ApprovalNeed, Approvers, PendingApproval } from '../core/approval.ts'
import type { Caller } from '../core/call.ts'
import type { Entry } from '../core/entry.ts'
import { metaSource } from '../core/source.ts'
import { matches } from '../lib/wildcard.ts'
import { lineage } from './agents.ts'

export type ApprovalRules = ReturnType<typeof createApprovalRules>

interface RuleList {
  /** The list's name in the configuration. */
  readonly key: string
  readonly patterns: readonly string[]
  readonly by: Approvers
}

/** Compiles `mcpServers.*.approve` and `agents.*.approve`. An agent inherits the lists of all its parents. */
export function createApprovalRules(config: Pick<Config, 'agents' | 'approvals' | 'mcpServers'>) {
  const { agents, mcpServers } = config
  const { by } = config.approvals
  const servers = approvalLists('mcpServers', mcpServers, by)
  const own = approvalLists('agents', agents, by)
  const families = new Map<string, readonly RuleList[]>()
  for (const agent of own.size > 0 ? Object.keys(agents) : []) {
    const lists = lineage(agent, own).flatMap((name) => own.get(name) ?? [])
    if (lists.length > 0) families.set(agent, lists)
  }

  const serverRule = (entry: Entry): Matched | undefined => {
    const list = entry.kind === 'tool' ? servers.get(entry.server) : undefined
    return list && matchingRule(list, (pattern) => allNamesOf(entry).some((name) => matches(pattern, name)))
  }

  return {
    /** Whether and by whom a call must be approved. `more` is a rule that applies to this call only, such as chat's. */
    need(entry: Entry, agent: string, more?: string): ApprovalNeed | undefined {
      const found: Matched[] = []
      const server = serverRule(entry)
      if (server) found.push(server)
      for (const list of entry.kind === 'tool' ? (families.get(agent) ?? []) : []) {
        const rule = matchingRule(list, (pattern) => isMeant(pattern, entry))
        if (rule) found.push(rule)
      }
      if (more !== undefined) found.push({ rule: more, by })
      const [first] = found
      return first && { rule: first.rule, by: found.map((one) => one.by) }
    },
    /** The server's rule that requires approval for an entry, whoever calls it. */
    ofServer: (entry: Entry): string | undefined => serverRule(entry)?.rule,
  }
}

interface WrittenApprovals {
  readonly approve?: readonly string[] | undefined
  readonly approvers?: Approvers | undefined
}

const approvalLists = (section: string, all: Readonly<Record<string, WrittenApprovals>>, by: Approvers) =>
  new Map(
    Object.entries(all).flatMap(([name, { approve = [], approvers = by }]): [string, RuleList][] =>
      approve.length > 0 ? [[name, { key: `${section}.${name}.approve`, patterns: approve, by: approvers }]] : [],
    ),
  )

interface Matched {
  readonly rule: string
  readonly by: Approvers
}

function matchingRule({ key, patterns, by }: RuleList, fits: (pattern: string) => boolean): Matched | undefined {
  const index = patterns.findIndex(fits)
  return index < 0 ? undefined : { rule: `${key}[${index}]`, by }
}

/** All names of an entry, so that an alias cannot bypass a rule. */
const allNamesOf = ({ name, aliases = [] }: Entry): readonly string[] => [name, ...aliases]

/**
 * Whether an agent's pattern means an entry. Meta-tools must be named: a wildcard would ask about every search, and the
 * calls that meta-tools run are checked themselves.
 */
function isMeant(pattern: string, entry: Entry): boolean {
  const { server, traits } = entry
  if (pattern === 'writes') return !traits.readOnly && !traits.carries
  if (server === metaSource && !pattern.startsWith(`${metaSource}.`)) return false
  return allNamesOf(entry).some((name) => matches(pattern, `${server}.${name}`))
}

/** The gateway's own token and the local user. Both are the operator, who may have no other credential. */
const operatorPrincipals: ReadonlySet<string> = new Set(['token', 'local'])

/**
 * Whether a person may answer. Answering a call that was made with one's own credential needs `own`, because the agent
 * that holds the credential could answer itself; the operator is excepted.
 */
export function mayAnswer(
  { by, principal }: Pick<PendingApproval, 'by' | 'principal'>,
  person: Pick<Caller, 'principal' | 'admin'>,
): boolean {
  const isOwn = principal === person.principal
  const counts = !isOwn || operatorPrincipals.has(person.principal)
  return by.every((list) =>
    list.some((word) => {
      if (word === 'own') return isOwn
      if (word === 'admins') return counts && person.admin
      return word !== 'client' && counts && (word === person.principal || `key:${word}` === person.principal)
    }),
  )
}
