import type { Readable, Transform } from 'node:stream'
import { createBrotliDecompress, createGunzip, createInflate } from 'node:zlib'
import { readBeginning } from '../../../lib/read-bounded.ts'

const decoders: Readonly<Record<string, () => Transform>> = {
  gzip: createGunzip,
  'x-gzip': createGunzip,
  deflate: createInflate,
  br: createBrotliDecompress,
}

/**
 * Reads a body up to a size and stops the sender there. What is compressed counts by what comes out: a small bomb is
 * not read any further than a large page.
 */
export async function readBody(
  body: Readable,
  encoding: string,
  maxBytes: number,
): Promise<{ readonly bytes: Buffer; readonly truncated: boolean }> {
  const codings = encoding
    .toLowerCase()
    .split(',')
    .map((coding) => coding.trim())
  const known = codings.filter((coding) => coding !== '' && coding !== 'identity')
  const create = decoders[known[0] ?? '']
  if (known.length > 1 || (known.length === 1 && !create)) {
    body.destroy()
    throw new Error(`it is encoded as ${known.join(', ').slice(0, 40)}`)
  }
  const plain = create ? decoded(body, create()) : body
  try {
    return await readBeginning(plain, maxBytes)
  } finally {
    body.destroy()
  }
}

/** Not `pipeline`: it would throw for a reader that has had enough. */
function decoded(body: Readable, decoder: Transform): Transform {
  body.on('error', (error) => decoder.destroy(error))
  return body.pipe(decoder)
}
