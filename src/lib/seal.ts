import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto'

/** Hands something to a caller that only the same caller can hand back, unread and unchanged. */
export interface Seal {
  /** The replica that what is sealed belongs to, where there are several. */
  readonly replica?: string
  close(text: string, binding: string): string
  /** What was sealed under the same binding; undefined for anything else. */
  open(sealed: string, binding: string): string | undefined
}

const nonceLength = 12
const tagLength = 16

/** Encrypts and authenticates; the binding is authenticated with it and need not be sent. */
export function createSeal(secret: string, replica?: string): Seal {
  const key = Buffer.from(hkdfSync('sha256', secret, '', 'toolway seal', 32))
  return {
    ...(replica !== undefined && { replica }),
    close(text, binding) {
      const nonce = randomBytes(nonceLength)
      const cipher = createCipheriv('aes-256-gcm', key, nonce).setAAD(Buffer.from(binding))
      const sealed = Buffer.concat([nonce, cipher.update(text, 'utf8'), cipher.final(), cipher.getAuthTag()])
      return sealed.toString('base64url')
    },
    open(sealed, binding) {
      const bytes = Buffer.from(sealed, 'base64url')
      // Not every spelling that decodes is one that we wrote.
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
