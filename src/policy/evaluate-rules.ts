import { metaSource } from '../core/source.ts'
import { type AgentRules, listsTools, serverByEither, toolByName, toolByStar } from './agent-rules.ts'
import type { Consideration } from './explanation.ts'
import { byName, byStar } from './patterns.ts'
import { decides, type Permission, type PolicyQuery, type PolicyRefusal, passes, type Ruling } from './verdict.ts'

/** An agent and the agents that it inherits from, itself first. Never empty. */
export type RuleFamily = readonly AgentRules[]

/**
 * Decides by the precedence of G6. A `deny` from any agent in the family wins; explicit denies are checked before
 * wildcards. Then every agent that has an `allow` must allow the entry; an agent without an `allow` leaves the decision
 * to its parent. So an agent never has more permissions than the agents it inherits from.
 */
export function decideByRules(family: RuleFamily, question: PolicyQuery, considered?: Consideration[]): Ruling {
  const { server, name, isTool } = question
  for (const { path, deny } of family) {
    const refusal = byName(deny.servers, server) ?? (isTool ? toolByName(deny, server, name) : undefined)
    if (refusal) return decides(refusal, 'explicit deny', 'it is listed', considered)
    considered?.push(passes('explicit deny', `${path}.deny`))
  }
  for (const { path, deny } of family) {
    const refusal = byStar(deny.servers, server) ?? (isTool ? toolByStar(deny, server, name) : undefined)
    if (refusal) return decides(refusal, 'wildcard deny', 'its pattern matches', considered)
    considered?.push(passes('wildcard deny', `${path}.deny`))
  }
  let nearest: Permission | undefined
  for (let level = 0; level < family.length; level++) {
    const rules = family[level] as AgentRules
    const parent = family[level + 1]
    if (parent && rules.allow.empty) {
      const note = `it has no allow rules, so those of ${parent.path} apply`
      considered?.push(passes('explicit allow', `${rules.path}.allow`, note))
      continue
    }
    const ruling = decideByAllow(rules, question, parent !== undefined, considered)
    if (!ruling.allowed) return ruling
    nearest ??= ruling
  }
  // The last agent of a family has no parent, so its `allow` is always evaluated and `nearest` is set here.
  return nearest as Permission
}

export function closedBy(family: RuleFamily, server: string): PolicyRefusal | undefined {
  for (const { deny } of family) {
    const refusal = serverByEither(deny, server)
    if (refusal) return refusal
  }
  const closes = (rules: AgentRules, level: number) => {
    const hasParent = level < family.length - 1
    if ((rules.allow.empty && hasParent) || serverByEither(rules.allow, server) !== undefined) return false
    return lacksServer(rules, server, hasParent) || !listsTools(rules.allow, server)
  }
  return family.find(closes)?.serverNotAllowed
}

/** Whether tool rules lack the server rule that they need. An agent without server rules uses its parent's. */
const lacksServer = ({ toolsNeedServer, allow }: AgentRules, server: string, hasParent: boolean): boolean =>
  toolsNeedServer &&
  server !== metaSource &&
  !(hasParent && allow.listsNoServer) &&
  serverByEither(allow, server) === undefined

function decideByAllow(
  rules: AgentRules,
  { server, name, isTool }: PolicyQuery,
  hasParent: boolean,
  considered?: Consideration[],
): Ruling {
  const { path, allow } = rules
  if (isTool && lacksServer(rules, server, hasParent)) {
    const note = `${path}.allow.servers does not list the server (policy.toolsNeedServer)`
    return decides(rules.serverNotAllowed, 'default deny', note, considered)
  }
  const explicit = isTool ? toolByName(allow, server, name) : byName(allow.servers, server)
  if (explicit) return decides(explicit, 'explicit allow', 'it is listed', considered)
  considered?.push(passes('explicit allow', `${path}.allow`))

  const wildcard = isTool ? toolByStar(allow, server, name) : byStar(allow.servers, server)
  if (wildcard) return decides(wildcard, 'wildcard allow', 'its pattern matches', considered)
  considered?.push(passes('wildcard allow', `${path}.allow`))

  if (server === metaSource)
    return decides(rules.metaTools, 'implicit grant', 'meta-tools are allowed unless denied', considered)
  const listed = isTool && listsTools(allow, server)
  const granted = isTool && !listed ? serverByEither(allow, server) : undefined
  if (granted) return decides(granted, 'implicit grant', 'its server is allowed without a list of tools', considered)
  const closed = listed ? 'only other tools are listed' : 'the server is not allowed'
  considered?.push(passes('implicit grant', `${path}.allow`, closed))
  const refusal = listed ? rules.toolNotAllowed : rules.serverNotAllowed
  return decides(refusal, 'default deny', 'no rule allows it', considered)
}
