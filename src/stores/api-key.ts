import { hash, randomBytes } from 'node:crypto'

/** What keys may be called: it stands in the key itself, in audit and on command lines. */
export const keyName = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/

/**
 * A new API key and the hash that is kept of it. Plain SHA-256 is right here: slow hashes make up for passwords that
 * can be guessed, and nobody guesses 32 random bytes. The name is in it, so that a key found somewhere can be revoked.
 */
export function newApiKey(id: string): { readonly key: string; readonly hash: string } {
  const key = `twk_${id}_${randomBytes(32).toString('base64url')}`
  return { key, hash: `sha256:${hash('sha256', key, 'hex')}` }
}
