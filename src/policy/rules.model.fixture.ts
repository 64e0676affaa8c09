import type { ErrorCode } from '../core/errors.ts'
import type { WrittenAgent } from './agent-rules.ts'
import type { ExplanationStep, PolicyQuery } from './explanation.ts'
import type { GlobalPolicy } from './rules.ts'

export interface WrittenPolicy {
  readonly agents: Readonly<Record<string, WrittenAgent>>
  readonly policy: GlobalPolicy
}

/** What the model says: the decision, its code, and the step that made it. */
export interface Modelled {
  readonly allowed: boolean
  readonly code?: ErrorCode
  readonly step: ExplanationStep
}

/** The rules as the sentences of F7, G6 and G7 have them: slow, obvious, and sharing nothing with what they judge. */
export function model({ agents, policy }: WrittenPolicy, question: PolicyQuery): Modelled {
  const { agent, server, name, isTool, authenticated } = question
  const whole = `${server}.${name}`
  const deny = (code: ErrorCode, step: ExplanationStep): Modelled => ({ allowed: false, code, step })

  // F7: blocked tools, allowed servers, allowed tools, tools that need an authenticated caller.
  const isMeta = server === 'toolway'
  if (policy.blockedTools.some((pattern) => like(pattern, whole))) return deny('TOOL_BLOCKED', 'blocked tools')
  if (!isMeta && !policy.allowedServers.some((pattern) => like(pattern, server)))
    return deny('NAMESPACE_NOT_ALLOWED', 'allowed servers')
  if (!isMeta && isTool && policy.allowedTools.length > 0 && !policy.allowedTools.some((p) => like(p, whole)))
    return deny('DENIED_BY_POLICY', 'allowed tools')
  if (!isMeta && !authenticated && policy.requireAuth.some((pattern) => like(pattern, whole)))
    return deny('AUTH_REQUIRED', 'authentication')

  // G6: with no agents at all there is one that may use everything; otherwise what is not allowed is denied.
  const configured = Object.entries(agents)
  if (configured.length === 0) return { allowed: true, step: 'agent' }
  if (!configured.some(([one]) => one === agent)) return deny('DENIED_BY_POLICY', 'agent')

  // G7: `team.role` inherits from `team`.
  const family = configured
    .filter(([one]) => agent === one || agent.startsWith(`${one}.`))
    .sort(([a], [b]) => b.length - a.length)
    .map(([, rules]) => rules)

  // G6: explicit deny, wildcard deny, explicit allow, wildcard allow, implicit grant, default deny.
  if (family.some((rules) => denies(rules, 'explicit', question))) return deny('DENIED_BY_POLICY', 'explicit deny')
  if (family.some((rules) => denies(rules, 'wildcard', question))) return deny('DENIED_BY_POLICY', 'wildcard deny')
  const root = family.at(-1)
  const steps = family.filter((rules) => rules === root || hasAllow(rules)).map((rules) => allowStep(rules, question))
  if (steps.includes('default deny')) return deny('DENIED_BY_POLICY', 'default deny')
  return { allowed: true, step: steps[0] as ExplanationStep }
}

type How = 'explicit' | 'wildcard'

const hasAllow = ({ allow }: WrittenAgent) => allow.servers.length > 0 || Object.keys(allow.tools).length > 0

const denies = ({ deny }: WrittenAgent, how: How, question: PolicyQuery) =>
  saysServer(deny, how, question) || saysTool(deny, how, question)

function allowStep({ allow }: WrittenAgent, question: PolicyQuery): ExplanationStep {
  const { server, isTool } = question
  // Resources, templates and prompts go by the rules for servers.
  const says = isTool ? saysTool : saysServer
  if (says(allow, 'explicit', question)) return 'explicit allow'
  if (says(allow, 'wildcard', question)) return 'wildcard allow'
  if (server === 'toolway') return 'implicit grant'
  const serverAllowed = saysServer(allow, 'explicit', question) || saysServer(allow, 'wildcard', question)
  const noToolRule = !Object.keys(allow.tools).some((key) => like(key, server))
  return isTool && serverAllowed && noToolRule ? 'implicit grant' : 'default deny'
}

const saysServer = ({ servers }: WrittenAgent['allow'], how: How, { server }: PolicyQuery) =>
  servers.some((pattern) => (how === 'explicit' ? pattern === server : pattern.includes('*') && like(pattern, server)))

const saysTool = ({ tools }: WrittenAgent['allow'], how: How, { server, name, isTool }: PolicyQuery) =>
  isTool &&
  Object.entries(tools).some(([key, list]) =>
    list.some((pattern) => {
      const starred = key.includes('*') || pattern.includes('*')
      if (how === 'explicit') return !starred && key === server && pattern === name
      return starred && like(key, server) && like(pattern, name)
    }),
  )

/** A star is any run of characters, everything else is itself. */
const like = (pattern: string, text: string): boolean =>
  new RegExp(`^${pattern.replaceAll(/[^\w*]/g, '\\$&').replaceAll('*', '.*')}$`, 's').test(text)
