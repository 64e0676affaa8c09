import { hkdfSync } from 'node:crypto'

/** A secret for one purpose, made of a key that serves several: who learns one of them learns nothing of the others. */
export const derivedSecret = (key: string, purpose: string): string =>
  Buffer.from(hkdfSync('sha256', key, '', `toolway ${purpose}`, 32)).toString('base64url')
