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

/** Checks what the log signed. */
export interface Verifier {
  /** Names the key: the start of the SHA-256 of its DER form. */
  readonly id: string
  readonly pem: string
  /** `record` without `hash`; its `signature` is left out of what was signed. */
  verifies(record: Readonly<Record<string, unknown>>): boolean
}

/** Signs what the log says about itself. */
export interface Signer extends Verifier {
  /** The signature for a record that has neither `signature` nor `hash`. */
  sign(record: Readonly<Record<string, unknown>>): string
  /** For the file `head`, which changes too often to be signed. */
  mac(text: string): string
}

// What stands before the seed in the PKCS #8 form of an Ed25519 key (RFC 8410).
const pkcs8 = Buffer.from('302e020100300506032b657004220420', 'hex')
/** Keeps these signatures apart from any other use of such a key. */
const purpose = 'toolway audit 1\n'

/** The same secret always gives the same keys, so nothing but the secret need be kept. */
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

/** From a public key in PEM form. */
function verifierOf(publicKey: KeyObject | string): Verifier {
  const key = typeof publicKey === 'string' ? createPublicKey(publicKey) : publicKey
  return {
    id: hash('sha256', key.export({ format: 'der', type: 'spki' })).slice(0, 16),
    pem: key.export({ format: 'pem', type: 'spki' }) as string,
    verifies: ({ signature, ...record }) =>
      typeof signature === 'string' && verify(null, signed(record), key, Buffer.from(signature, 'base64url')),
  }
}

/** The keys in a file of them: a secret that was replaced leaves its public key behind for the records of its time. */
export const verifiersOf = (pem: string): Verifier[] =>
  (pem.match(/-----BEGIN PUBLIC KEY-----[^-]+-----END PUBLIC KEY-----/g) ?? []).flatMap((block) => {
    try {
      return [verifierOf(block)]
    } catch {
      return []
    }
  })

const signed = (record: object): Buffer => Buffer.from(purpose + canonical(record))
