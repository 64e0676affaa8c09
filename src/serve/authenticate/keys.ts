import type { Clock } from '../../core/clock.ts'
import type { Identity } from './identity.ts'
import { outdated, wrong } from './refusals.ts'

/** An API key as far as the door has to know it. */
export interface ApiKey {
  readonly id: string
  /** The agents that it may act as; `*` among them is all of them. */
  readonly agents: readonly string[]
  readonly admin: boolean
  /** Milliseconds since the epoch; never if absent. */
  readonly expires?: number | undefined
}

/** Where API keys are looked up, by `sha256:` and the hexadecimal digest of the whole key. */
export interface KeySource {
  /** Whether anybody was ever given one. */
  readonly inUse: boolean
  find(hash: string): ApiKey | undefined
}

/**
 * The holder of an API key. Looking the digest up in a map is no leak: its time may tell how a digest compares with
 * those that are kept, but nobody can choose digests, nor get from one back to the key.
 */
export function keyHolder(keys: KeySource, clock: Clock): (digest: Buffer) => Identity {
  return (digest) => {
    const key = keys.find(`sha256:${digest.toString('hex')}`)
    if (key === undefined) {
      throw wrong('The API key is unknown or was revoked: ask the operator for another one (toolway keys create).')
    }
    if (key.expires !== undefined && key.expires <= clock.now()) {
      throw outdated('The API key has expired: ask the operator for another one (toolway keys create).')
    }
    const agents = key.agents.includes('*') ? '*' : key.agents
    return { principal: `key:${key.id}`, authenticated: true, admin: key.admin, agents }
  }
}
