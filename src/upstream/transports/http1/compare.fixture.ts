import { isDeepStrictEqual } from 'node:util'
import fc from 'fast-check'
import { type Reading, readByNode, readByteByByte, readByUndici, readByUs } from './readers.fixture.ts'
import { anyAnswer } from './responses.fixture.ts'

/** The reasons for which our reader deliberately rejects responses that undici and node:http both accept. */
const stricter: ReadonlySet<string> = new Set([
  // Line breaks before the status line, HTTP/0.9 and 2.0, a status of 600 and more, control characters in the reason.
  'invalid status line',
  // Any transfer coding except chunked, because Toolway cannot decode it.
  'unsupported Transfer-Encoding',
  // Two Transfer-Encoding lines; Transfer-Encoding among the trailers.
  'more than one Content-Length',
  // Extensions with an empty name or value, and sizes of more than 13 digits.
  'invalid chunk size',
  // More than 15 digits.
  'invalid Content-Length',
])

export interface Compared {
  readonly cases: number
  /** How many responses all readers accept. */
  readonly taken: number
  readonly refused: number
  /** How many responses undici and node:http accept and our reader rejects. */
  readonly stricter: number
  /** On how many responses undici and node:http disagree. */
  readonly disputed: number
  /** Unacceptable differences: the bytes, and what each reader made of them. */
  readonly wrong: readonly string[]
}

/**
 * Lets all readers read generated responses, and finds those for which our reader is laxer, or stricter without a known
 * reason.
 */
export async function compareReaders(cases: number, seed: number): Promise<Compared> {
  const counts = { taken: 0, refused: 0, stricter: 0, disputed: 0 }
  const wrong: string[] = []
  const one = async (pieces: readonly Buffer[]) => {
    const { reading: ours, left } = readByteByByte(pieces)
    const [node, undici] = await Promise.all([readByNode(pieces), readByUndici(pieces)])
    const agree = isDeepStrictEqual(node, undici) || ('refused' in node && 'refused' in undici)
    if (!agree) counts.disputed++
    const fault = faultOf({ ours, node, undici, left, agree, cut: readByUs(pieces) })
    if (fault !== undefined) {
      const bytes = JSON.stringify(pieces.map((piece) => piece.toString('latin1')))
      wrong.push(`${fault}: ${bytes}\n${JSON.stringify({ ours, node, undici })}`)
    } else if (!('refused' in ours)) counts.taken++
    else if (agree && !('refused' in node)) counts.stricter++
    else counts.refused++
  }
  const batch = 100
  for (let done = 0; done < cases; done += batch) {
    const samples = fc.sample(anyAnswer, { numRuns: Math.min(batch, cases - done), seed: seed + done })
    await Promise.all(samples.map(one))
  }
  return { cases, ...counts, wrong }
}

function faultOf(read: {
  readonly ours: Reading
  readonly cut: Reading
  readonly node: Reading
  readonly undici: Reading
  readonly left: number
  readonly agree: boolean
}): string | undefined {
  const { ours, cut, node, undici, left, agree } = read
  // If both reject the response, their reasons may differ, because pieces show a problem earlier or later.
  if (!isDeepStrictEqual(ours, cut) && !('refused' in ours && 'refused' in cut)) return 'it depends on the pieces'
  if (!('refused' in ours)) {
    if (!isDeepStrictEqual(ours, undici)) return 'undici does not take it like this'
    // If further bytes arrive together with the response, node:http rejects it, while our reader accepts it and closes
    // the connection.
    if (left === 0 && !isDeepStrictEqual(ours, node)) return 'node:http does not take it like this'
    return undefined
  }
  if (agree && !('refused' in node) && !stricter.has(ours.refused)) return 'undici and node:http take it'
  return undefined
}
