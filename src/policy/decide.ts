import type { PolicyConfig } from '../config/schema.ts'
import type { Decide, Decision, Denial } from '../core/decision.ts'
import type { ErrorCode } from '../core/errors.ts'
import { matches } from '../core/wildcard.ts'

const allowed: Decision = { allowed: true }

/** Global policy (F7): blocked tools, allowed servers, allowed tools, tools that need an authenticated caller. */
export function createPolicy(config: PolicyConfig): Decide {
  return (caller, entry) => {
    const name = `${entry.server}.${entry.name}`
    const deny = (code: ErrorCode, rule: string, reason: string): Denial => ({ allowed: false, code, rule, reason })
    const blocked = config.blockedTools.findIndex((pattern) => matches(pattern, name))
    if (blocked >= 0)
      return deny('TOOL_BLOCKED', `policy.blockedTools[${blocked}]`, `${name} is blocked by the operator.`)
    // Meta-tools show and run only what the caller may use anyway, so an allow-list need not name them.
    if (entry.server === 'toolway') return allowed
    if (!config.allowedServers.some((pattern) => matches(pattern, entry.server))) {
      return deny('NAMESPACE_NOT_ALLOWED', 'policy.allowedServers', `The server ${entry.server} is not allowed here.`)
    }
    const listed = config.allowedTools.length === 0 || config.allowedTools.some((pattern) => matches(pattern, name))
    if (entry.kind === 'tool' && !listed) {
      return deny('DENIED_BY_POLICY', 'policy.allowedTools', `${name} is not on the operator's list of allowed tools.`)
    }
    const guarded = caller.authenticated ? -1 : config.requireAuth.findIndex((pattern) => matches(pattern, name))
    if (guarded >= 0)
      return deny('AUTH_REQUIRED', `policy.requireAuth[${guarded}]`, `${name} needs an authenticated caller.`)
    return allowed
  }
}
