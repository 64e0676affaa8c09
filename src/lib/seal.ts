import { createCipheriv, createDecipheriv, createSecretKey, hkdfSync, randomBytes } from 'node:crypto'

/** Seals values that a caller keeps for us. Only that caller can use them, and it cannot read or change them. */
export interface Seal {
  /** The replica that issued the sealed value, if there are several replicas. */
  readonly replica?: string
  close(text: string, binding: string): string
  /** Opens a sealed value; undefined unless it was sealed under the same binding. */
  open(sealed: string, binding: string): string | undefined
}

const nonceLength = 12
const tagLength = 16

/** A seal that uses AES-256-GCM. The binding is authenticated data and is not part of the sealed value. */
export function createSeal(secret: string, replica?: string): Seal {
  // A KeyObject: with raw bytes, Node is slower, because it throws and catches an error internally.
  const key = createSecretKey(Buffer.from(hkdfSync('sha256', secret, '', 'toolway seal', 32)))
  return {
    replica,
    close(text, binding) {
      const nonce = randomBytes(nonceLength)
      const cipher = createCipheriv('aes-256-gcm', key, nonce).setAAD(Buffer.from(binding))
      const sealed = Buffer.concat([nonce, cipher.update(text, 'utf8'), cipher.final(), cipher.getAuthTag()])
      return sealed.toString('base64url')
    },
    open(sealed, binding) {
      const bytes = Buffer.from(sealed, 'base64url')
      // Accept only the canonical encoding, because other encodings decode to the same bytes.
      if (bytes.length < nonceLength + tagLength || bytes.toString('base64url') !== sealed) return undefined
      const decipher = createDecipheriv('aes-256-gcm', key, bytes.subarray(0, nonceLength))
      decipher.setAAD(Buffer.from(binding)).setAuthTag(bytes.subarray(-tagLength))
      try {
        const text = decipher.update(bytes.subarray(nonceLength, -tagLength))
        return Buffer.concat([text, decipher.final()]).toString('utf8')
      } catch {
        return undefined
      }
    },
  }
}

/** The maximum number of previous secrets with which a rotating seal opens values. */
const maxPrevious = 3

/** A seal that uses the latest secret. It still opens values that were sealed with previous secrets. */
export function createRotatingSeal(secret: string): Seal & { rotate(secret: string): void } {
  let seals = [createSeal(secret)]
  return {
    close: (text, binding) => (seals[0] as Seal).close(text, binding),
    open(sealed, binding) {
      for (const seal of seals) {
        const text = seal.open(sealed, binding)
        if (text !== undefined) return text
      }
      return undefined
    },
    rotate(next) {
      seals = [createSeal(next), ...seals.slice(0, maxPrevious)]
    },
  }
}
