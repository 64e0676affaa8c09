import { isUtf8 } from 'node:buffer'
import { createHash } from 'node:crypto'
import { crc32 } from 'node:zlib'
import * as z from 'zod'
import { invalidArguments } from '../../core/errors.ts'
import { resultOf } from '../../core/result.ts'
import { defineTool } from '../define-tool.ts'

const digests = ['sha256', 'sha384', 'sha512', 'sha3-256', 'sha3-512', 'blake2b512', 'sha1', 'md5'] as const
const encodings = ['base64', 'base64url', 'hex', 'utf8'] as const
const hashAlgorithms = [...digests, 'crc32', ...encodings] as const

export const hashTool = defineTool({
  name: 'hash',
  title: 'Hash or encode',
  description:
    'Computes the exact digest, checksum or encoding of data: sha256 (default), sha512, md5, crc32, base64, hex and others. ' +
    'Digests and crc32 are returned as lower-case hex. To decode, set `algorithm` to "utf8" and `encoding` to the encoding of the data. ' +
    'md5, sha1 and crc32 detect accidental changes only, not deliberate ones.',
  input: z.object({
    data: z.string().describe('The data to hash or encode.'),
    algorithm: z.enum(hashAlgorithms).default('sha256').describe('The digest, checksum or encoding to compute.'),
    encoding: z
      .enum(['utf8', 'base64', 'hex'])
      .default('utf8')
      .describe('How data is encoded: as text (utf8), or as bytes in base64 or hex.'),
  }),
  output: z.object({ algorithm: z.enum(hashAlgorithms), result: z.string() }),
  readOnly: true,
  run({ data, algorithm, encoding }) {
    const result = compute(algorithm, decodeData(data, encoding))
    return resultOf({ content: [{ type: 'text', text: result }], structuredContent: { algorithm, result } })
  },
})

function compute(algorithm: (typeof hashAlgorithms)[number], bytes: Buffer): string {
  switch (algorithm) {
    case 'utf8':
      return utf8Text(bytes)
    case 'base64':
    case 'base64url':
    case 'hex':
      return bytes.toString(algorithm)
    case 'crc32':
      return crc32(bytes).toString(16).padStart(8, '0')
    default:
      return createHash(algorithm).update(bytes).digest('hex')
  }
}

/** Decodes the data. Rejects malformed input: Node.js would silently drop characters and return another digest. */
function decodeData(data: string, encoding: 'utf8' | 'base64' | 'hex'): Buffer {
  const compact = encoding === 'utf8' ? data : data.replace(/\s+/g, '')
  if (!encodingChecks[encoding](compact))
    throw invalidArguments(`"data" is not valid ${encoding}; correct it, or change "encoding".`)
  return Buffer.from(compact, encoding)
}

const encodingChecks = {
  utf8: (data: string) => data.isWellFormed(),
  base64: (data: string) => /^[A-Za-z0-9+/_-]*={0,2}$/.test(data) && (data.length - padding(data)) % 4 !== 1,
  hex: (data: string) => data.length % 2 === 0 && /^[0-9a-f]*$/i.test(data),
}

const padding = (data: string) => (data.endsWith('==') ? 2 : data.endsWith('=') ? 1 : 0)

function utf8Text(bytes: Buffer): string {
  if (isUtf8(bytes)) return bytes.toString()
  throw invalidArguments('These bytes are not UTF-8 text; use base64 or hex instead of utf8.')
}
