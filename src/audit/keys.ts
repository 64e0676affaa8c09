import {
  createHmac,
  createPrivateKey,
  createPublicKey,
  hash,
  hkdfSync,
  type KeyObject,
  sign,
  verify,
} from 'node:crypto'
import { canonical } from '../lib/canonical-json.ts'

export interface Verifier {
  /** Key ID: the start of the SHA-256 of the DER form. */
  readonly id: string
  readonly pem: string
  /** Takes a record without `hash`; `signature` is excluded from the signed bytes. */
  verifies(record: Readonly<Record<string, unknown>>): boolean
}

export interface Signer extends Verifier {
  /** Takes a record without `signature` and `hash`. */
  sign(record: Readonly<Record<string, unknown>>): string
  /** For the file `head`, which changes too often to be signed. */
  mac(text: string): string
}

// Prefix of the seed in the PKCS #8 form of an Ed25519 key (RFC 8410).
const pkcs8 = Buffer.from('302e020100300506032b657004220420', 'hex')
/** Domain separation from other uses of the key. */
const purpose = 'toolway audit 1\n'

/** Derives the keys from the secret, so only the secret must be stored. */
export function signerOf(secret: Buffer | string): Signer {
  const derive = (info: string) => Buffer.from(hkdfSync('sha256', secret, '', info, 32))
  const seed = derive('toolway audit: signing')
  const key = createPrivateKey({ key: Buffer.concat([pkcs8, seed]), format: 'der', type: 'pkcs8' })
  const head = derive('toolway audit: head')
  const verifier = verifierOf(createPublicKey(key))
  return {
    ...verifier,
    sign: (record) => sign(null, signed(record), key).toString('base64url'),
    mac: (text) => createHmac('sha256', head).update(text).digest('hex'),
  }
}

function verifierOf(publicKey: KeyObject | string): Verifier {
  const key = typeof publicKey === 'string' ? createPublicKey(publicKey) : publicKey
  return {
    id: hash('sha256', key.export({ format: 'der', type: 'spki' })).slice(0, 16),
    pem: key.export({ format: 'pem', type: 'spki' }) as string,
    verifies: ({ signature, ...record }) =>
      typeof signature === 'string' && verify(null, signed(record), key, Buffer.from(signature, 'base64url')),
  }
}

/** The file may hold several keys: a replaced secret leaves its public key for the older records. */
export const verifiersOf = (pem: string): Verifier[] =>
  (pem.match(/-----BEGIN PUBLIC KEY-----[^-]+-----END PUBLIC KEY-----/g) ?? []).flatMap((block) => {
    try {
      return [verifierOf(block)]
    } catch {
      return []
    }
  })

const signed = (record: object): Buffer => Buffer.from(purpose + canonical(record))
