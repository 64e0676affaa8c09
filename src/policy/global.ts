import type { PolicyConfig } from '../config/schema.ts'
import { metaSource } from '../core/source.ts'
import type { Consideration } from './explanation.ts'
import { byEither, type CompilePattern, compilePatterns } from './patterns.ts'
import { decides, type PolicyQuery, type PolicyRefusal, passes } from './verdict.ts'

export type GlobalPolicy = Pick<PolicyConfig, 'allowedServers' | 'allowedTools' | 'blockedTools' | 'requireAuth'> &
  Partial<Pick<PolicyConfig, 'toolsNeedServer'>>

/** Returns global policy's refusal. If undefined, the agent's rules decide. */
export type RefuseGlobally = (
  question: Omit<PolicyQuery, 'agent'>,
  considered?: Consideration[],
) => PolicyRefusal | undefined

/** Compiles global policy (F7): blocked tools, allowed servers and tools, and tools that need authentication. */
export function compileGlobal(policy: GlobalPolicy, compile: CompilePattern): RefuseGlobally {
  const blockedTools = compilePatterns(policy.blockedTools, compile, (index) =>
    blocked(`policy.blockedTools[${index}]`),
  )
  const allowedServers = compilePatterns(policy.allowedServers, compile, (index) => `policy.allowedServers[${index}]`)
  const allowedTools = compilePatterns(policy.allowedTools, compile, (index) => `policy.allowedTools[${index}]`)
  const everyTool = policy.allowedTools.length === 0
  const requireAuth = compilePatterns(policy.requireAuth, compile, (index) => guarded(`policy.requireAuth[${index}]`))

  return ({ server, name, isTool, authenticated }, considered) => {
    const whole = `${server}.${name}`
    const block = byEither(blockedTools, whole)
    if (block) return decides(block, 'blocked tools', 'blocked for every agent', considered)
    considered?.push(passes('blocked tools', 'policy.blockedTools', 'not blocked'))
    // Meta-tools show and run only what the caller may use, so allow-lists need not name them.
    if (server === metaSource) return undefined

    const serverRule = byEither(allowedServers, server)
    if (serverRule === undefined)
      return decides(serverNotListed, 'allowed servers', 'the server is not listed', considered)
    considered?.push(passes('allowed servers', serverRule, 'the server is listed'))

    if (isTool) {
      const toolRule = everyTool ? 'policy.allowedTools' : byEither(allowedTools, whole)
      if (toolRule === undefined) return decides(toolNotListed, 'allowed tools', 'the tool is not listed', considered)
      considered?.push(passes('allowed tools', toolRule, everyTool ? 'no list is configured' : 'the tool is listed'))
    }

    const guard = authenticated ? undefined : byEither(requireAuth, whole)
    if (guard) return decides(guard, 'authentication', 'the caller is not authenticated', considered)
    const note = authenticated ? 'the caller is authenticated' : 'no authentication needed'
    considered?.push(passes('authentication', 'policy.requireAuth', note))
    return undefined
  }
}

const blocked = (rule: string): PolicyRefusal => ({
  allowed: false,
  code: 'TOOL_BLOCKED',
  rule,
  auditReason: 'tool_blocked',
  sentence: ({ server, name }) => `${server}.${name} is blocked by the operator; use another tool.`,
})

const serverNotListed: PolicyRefusal = {
  allowed: false,
  code: 'NAMESPACE_NOT_ALLOWED',
  rule: 'policy.allowedServers',
  auditReason: 'server_not_allowed',
  sentence: ({ server }) => `The server ${server} is not in policy.allowedServers; use another server.`,
}

const toolNotListed: PolicyRefusal = {
  allowed: false,
  code: 'DENIED_BY_POLICY',
  rule: 'policy.allowedTools',
  auditReason: 'tool_not_allowed',
  sentence: ({ server, name }) => `${server}.${name} is not in policy.allowedTools; use a tool from tools/list.`,
}

const guarded = (rule: string): PolicyRefusal => ({
  allowed: false,
  code: 'AUTH_REQUIRED',
  rule,
  auditReason: 'auth_required',
  sentence: ({ server, name }) => `${server}.${name} needs an authenticated caller; connect with a credential.`,
})
