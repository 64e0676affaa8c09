import { hash } from 'node:crypto'
import type { JWTPayload } from 'jose'
import type { JwtConfig } from '../../config/schema.ts'
import type { ChallengeOf } from './challenge.ts'
import type { Identity } from './identity.ts'
import { insufficient, outdated } from './refusals.ts'

/** As the configuration spells the names of agents. */
const agentName = /^[A-Za-z0-9_][A-Za-z0-9_.:@/-]{0,127}$/

/**
 * Who the claims of a verified token say its bearer is. Never an admin: that is for the gateway's own operator to
 * grant, by the token or by a key, and not for whoever writes claims elsewhere.
 */
export function identityOf(
  claims: JWTPayload,
  { issuer, agentClaim, scopes }: Told,
  challengeOf: ChallengeOf,
): Identity {
  const principal = `jwt:${new URL(issuer).host}:${subject(claims)}`
  const known = { principal, authenticated: true, admin: false }
  const named = agentsOf(claims, agentClaim)
  if (Object.keys(scopes).length === 0) return { ...known, agents: named }
  const granted = scopesOf(claims).flatMap((scope) => (Object.hasOwn(scopes, scope) ? (scopes[scope] ?? []) : []))
  const agents = [...new Set([...named, ...granted])]
  // Where scopes say who may be whom, one that has none of them is nobody, and not the default agent.
  if (agents.length === 0) {
    const sentence = `The token has none of the scopes that are good for anything here: ask for one of ${Object.keys(scopes).join(', ')}.`
    throw insufficient(sentence, challengeOf({ error: 'insufficient_scope' }))
  }
  const stepUp = (agent: string): string | undefined => {
    const lacking = Object.keys(scopes).filter((scope) => scopes[scope]?.includes(agent))
    // Any one of them will do: the first is enough.
    return lacking[0] && challengeOf({ error: 'insufficient_scope', scopes: [lacking[0]] })
  }
  return { ...known, agents, stepUp }
}

/** The part of the configuration that says what claims mean. */
type Told = Readonly<Pick<JwtConfig, 'issuer' | 'agentClaim' | 'scopes'>>

/** `scope` as one text (RFC 9068), or `scp`, as some providers call it, as a list. */
function scopesOf({ scope, scp }: JWTPayload): readonly string[] {
  const said = [scope, scp].flat().filter((part) => typeof part === 'string')
  return said.flatMap((part) => part.split(' ')).filter((part) => part !== '')
}

/** Short and printable, and different for different subjects: one that cannot stand as it is is hashed. */
function subject({ sub }: JWTPayload): string {
  if (typeof sub !== 'string' || sub === '') {
    throw outdated('The token names no subject: ask your identity provider for one with a sub claim.')
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
  throw outdated(
    `The token's claim ${claim} is neither the name of an agent nor a list of such names: ask your identity provider for another token.`,
  )
}

const isAgentName = (value: unknown): value is string => typeof value === 'string' && agentName.test(value)
