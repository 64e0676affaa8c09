import { createHash, randomBytes } from 'node:crypto'

/** Proof that whoever brings the code is whoever asked for it (RFC 7636). */
export interface Pkce {
  readonly verifier: string
  readonly challenge: string
}

export function createPkce(): Pkce {
  const verifier = unguessable()
  return { verifier, challenge: createHash('sha256').update(verifier).digest('base64url') }
}

/** 256 random bits, as may stand in an address. */
export const unguessable = (): string => randomBytes(32).toString('base64url')
