import type { PolicyConfig } from '../config/schema.ts'
import type { Consideration } from './explanation.ts'
import { compilePatterns } from './patterns.ts'
import type { Question, Refusal } from './verdict.ts'

/** The lists of section `policy` that decide about calls. */
export type GlobalPolicy = Pick<PolicyConfig, 'allowedServers' | 'allowedTools' | 'blockedTools' | 'requireAuth'>

/** Whether global policy refuses; undefined hands the question on to the rules of the agent. */
export type RefuseGlobally = (question: Question, considered?: Consideration[]) => Refusal | undefined

/** Global policy (F7): blocked tools, allowed servers, allowed tools, tools that need an authenticated caller. */
export function compileGlobal(policy: GlobalPolicy): RefuseGlobally {
  const blockedTools = compilePatterns(policy.blockedTools)
  const blockedBy = policy.blockedTools.map((_, index) => blocked(`policy.blockedTools[${index}]`))
  const allowedServers = compilePatterns(policy.allowedServers)
  const allowedTools = compilePatterns(policy.allowedTools)
  const everyTool = policy.allowedTools.length === 0
  const requireAuth = compilePatterns(policy.requireAuth)
  const guardedBy = policy.requireAuth.map((_, index) => guarded(`policy.requireAuth[${index}]`))

  return ({ server, name, isTool, authenticated }, considered) => {
    const whole = `${server}.${name}`
    const block = blockedBy[blockedTools.first(whole)]
    considered?.push(
      block
        ? { step: 'blocked tools', rule: block.rule, outcome: 'denies', note: 'blocked for every agent' }
        : { step: 'blocked tools', rule: 'policy.blockedTools', outcome: 'passes', note: 'not blocked' },
    )
    if (block) return block
    // Meta-tools show and run only what the caller may use anyway, so an allow-list need not name them.
    if (server === 'toolway') return undefined

    const listed = allowedServers.first(server)
    considered?.push(
      listed < 0
        ? {
            step: 'allowed servers',
            rule: 'policy.allowedServers',
            outcome: 'denies',
            note: 'the server is not listed',
          }
        : { step: 'allowed servers', rule: `policy.allowedServers[${listed}]`, outcome: 'passes', note: 'listed' },
    )
    if (listed < 0) return serverNotListed

    if (isTool) {
      const tool = everyTool ? -1 : allowedTools.first(whole)
      const refused = !everyTool && tool < 0
      considered?.push({
        step: 'allowed tools',
        rule: tool < 0 ? 'policy.allowedTools' : `policy.allowedTools[${tool}]`,
        outcome: refused ? 'denies' : 'passes',
        note: everyTool ? 'no list, so every tool may be allowed' : refused ? 'the tool is not listed' : 'listed',
      })
      if (refused) return toolNotListed
    }

    const guard = authenticated ? undefined : guardedBy[requireAuth.first(whole)]
    considered?.push(
      guard
        ? { step: 'authentication', rule: guard.rule, outcome: 'denies', note: 'the caller is not authenticated' }
        : {
            step: 'authentication',
            rule: 'policy.requireAuth',
            outcome: 'passes',
            note: authenticated ? 'the caller is authenticated' : 'needs no authenticated caller',
          },
    )
    return guard
  }
}

const blocked = (rule: string): Refusal => ({
  allowed: false,
  code: 'TOOL_BLOCKED',
  rule,
  auditReason: 'tool_blocked',
  sentence: ({ server, name }) => `${server}.${name} is blocked by the operator; use another tool.`,
})

const serverNotListed: Refusal = {
  allowed: false,
  code: 'NAMESPACE_NOT_ALLOWED',
  rule: 'policy.allowedServers',
  auditReason: 'server_not_allowed',
  sentence: ({ server }) => `The server ${server} is not allowed here; use another server.`,
}

const toolNotListed: Refusal = {
  allowed: false,
  code: 'DENIED_BY_POLICY',
  rule: 'policy.allowedTools',
  auditReason: 'tool_not_allowed',
  sentence: ({ server, name }) =>
    `${server}.${name} is not on the operator's list of allowed tools; use one that is listed to you.`,
}

const guarded = (rule: string): Refusal => ({
  allowed: false,
  code: 'AUTH_REQUIRED',
  rule,
  auditReason: 'auth_required',
  sentence: ({ server, name }) => `${server}.${name} needs an authenticated caller; connect with a credential.`,
})
