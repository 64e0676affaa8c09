import { hash } from 'node:crypto'
import { wrong } from './refusals.ts'

/** More than any provider's tokens need, and no more than a request's headers may hold by themselves. */
const maxLength = 16 * 1024

/** What the Authorization header holds; there is one scheme, and one credential in it. */
export function bearer(authorization: string): string {
  const given = /^Bearer +([^ ]+) *$/i.exec(authorization)?.[1]
  if (given === undefined) {
    throw wrong('The Authorization header holds no bearer token: send "Authorization: Bearer <token>".')
  }
  if (given.length > maxLength) {
    throw wrong('The credential is longer than 16 KiB: send "Authorization: Bearer <token>" with a smaller one.')
  }
  return given
}

/** Where a credential is looked for. Its form alone decides, so that a wrong one is never tried as something else. */
export function formOf(credential: string): 'key' | 'jwt' | 'token' {
  if (credential.startsWith('twk_')) return 'key'
  return /^[\w-]+\.[\w-]+\.[\w-]*$/.test(credential) ? 'jwt' : 'token'
}

/** What is compared and kept instead of the credential itself. */
export const digest = (credential: string): Buffer => hash('sha256', credential, 'buffer')

/** More credentials than this at one time are no longer worth remembering. */
const maxRemembered = 256

/**
 * The same for one credential after another: clients show theirs with every request. What it is good for is still asked
 * each time. The look-up tells nothing by its time, since nobody can choose how texts are hashed in this process.
 */
export function rememberedDigests(): (credential: string) => Buffer {
  const known = new Map<string, Buffer>()
  return (credential) => {
    const before = known.get(credential)
    if (before) return before
    if (known.size >= maxRemembered) known.clear()
    const made = digest(credential)
    known.set(credential, made)
    return made
  }
}
