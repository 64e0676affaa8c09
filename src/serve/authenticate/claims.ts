import { hash } from 'node:crypto'
import type { JWTPayload } from 'jose'
import type { Identity } from './identity.ts'
import { wrong } from './refusals.ts'

/** As the configuration spells the names of agents. */
const agentName = /^[A-Za-z0-9_][A-Za-z0-9_.:@/-]{0,127}$/

/**
 * Who the claims of a verified token say its bearer is. Never an admin: that is for the gateway's own operator to
 * grant, by the token or by a key, and not for whoever writes claims elsewhere.
 */
export function identityOf(claims: JWTPayload, issuer: string, agentClaim: string): Identity {
  const principal = `jwt:${new URL(issuer).host}:${subject(claims)}`
  return { principal, authenticated: true, admin: false, agents: agentsOf(claims, agentClaim) }
}

/** Short and printable, and different for different subjects: one that cannot stand as it is is hashed. */
function subject({ sub }: JWTPayload): string {
  if (typeof sub !== 'string' || sub === '') {
    throw wrong('The token names no subject: ask your identity provider for one with a sub claim.')
  }
  return /^[\x21-\x7d][\x21-\x7e]{0,199}$/.test(sub) ? sub : `~${hash('sha256', sub, 'base64url')}`
}

/** A name or a list of names. A claim that is there and names nobody is no reason to be the default agent. */
function agentsOf(claims: JWTPayload, claim: string): readonly string[] {
  if (!Object.hasOwn(claims, claim)) return []
  const value = claims[claim]
  const names = typeof value === 'string' ? [value] : value
  const valid = Array.isArray(names) && names.length > 0 && names.every(isAgentName)
  if (valid) return names
  throw wrong(
    `The token's claim ${claim} is neither the name of an agent nor a list of such names: ask your identity provider for another token.`,
  )
}

const isAgentName = (value: unknown): value is string => typeof value === 'string' && agentName.test(value)
