import type { Needle } from './finder.ts'

/**
 * The spellings of a secret that must be looked for one by one. Percent-encoding and JSON escapes are not among them:
 * there are too many ways to write them, so the text is decoded instead.
 */
export function formsOf(secret: string): Needle[] {
  const spellings = new Set([secret, JSON.stringify(secret).slice(1, -1), encodeURIComponent(secret.toWellFormed())])
  const bytes = Buffer.from(secret)
  const hex = bytes.toString('hex')
  const plain = new Set([bytes.toString('latin1'), hex, hex.toUpperCase()])
  return [
    ...[...plain].map((text) => ({ text })),
    ...[...spellings].flatMap((spelling) => base64Forms(Buffer.from(spelling))),
  ]
}

/**
 * How the bytes look inside the base64 of something longer: three bytes become four characters, so there are three
 * ways to fall into them. Only characters that hold nothing but bits of the secret are compared.
 */
function base64Forms(bytes: Buffer): Needle[] {
  return [0, 1, 2].flatMap((ahead) => {
    const text = Buffer.concat([Buffer.alloc(ahead), bytes]).toString('base64')
    const bits = (ahead + bytes.length) * 8
    const own = text.slice(Math.ceil((ahead * 8) / 6), Math.floor(bits / 6))
    const shared = { before: ahead > 0, after: bits % 6 > 0 }
    const forUrls = own.replaceAll('+', '-').replaceAll('/', '_')
    return [...new Set([own, forUrls])].map((form) => ({ text: form, shared }))
  })
}
