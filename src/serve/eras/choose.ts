import { isModernVersion, modernErrors } from '../../wire/revisions.ts'
import type { Inbound } from '../inbound.ts'
import { Refusal } from '../refusal.ts'
import { claims, claimsRightly, missingEnvelope } from './envelope.ts'

/**
 * To which era a message belongs. Its body decides; the header can only contradict it, except for a notification,
 * whose body need not say anything. Throws where body and header cannot both be meant.
 */
export function eraOf(inbound: Inbound, versionHeader?: string): 'legacy' | 'modern' {
  if (inbound.kind === 'answer') return 'legacy'
  const { params } = inbound
  const modernHeader = versionHeader !== undefined && isModernVersion(versionHeader)
  if (inbound.kind === 'request' && inbound.method === 'initialize' && !claimsRightly(params)) {
    if (!modernHeader) return 'legacy'
    const sentence = `"initialize" opens a session, and ${versionHeader} has none: send one without the other.`
    const mismatch = { header: versionHeader, body: 'initialize' }
    throw new Refusal(400, modernErrors.headerMismatch, sentence, { data: { mismatch } })
  }
  if (claims(params)) return 'modern'
  if (inbound.kind === 'request' && modernHeader) throw missingEnvelope(params)
  return modernHeader ? 'modern' : 'legacy'
}
