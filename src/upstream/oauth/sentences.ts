import { ToolwayError } from '../../core/errors.ts'
import type { Holder } from './grants.ts'

/** A person has to sign in. The sentence goes to whoever called, who may be a model: it says whom to ask for what. */
export function authRequired({ server, principal }: Holder, why: string, cause?: unknown): ToolwayError {
  const whose = principal === '' ? '' : ` --principal ${principal}`
  const sentence = `${server} ${why}. Ask the operator to run: toolway auth ${server}${whose}`
  return new ToolwayError('AUTH_REQUIRED', sentence, { server, auditReason: 'server_needs_auth', cause })
}

/** Trying again later may help: nobody needs to sign in for that. */
export function tokenUnavailable({ server }: Holder, why: string, cause: unknown): ToolwayError {
  const sentence = `There is no token for ${server} now: ${why}. Try again later.`
  return new ToolwayError('SERVER_UNAVAILABLE', sentence, { server, unsent: true, cause })
}
