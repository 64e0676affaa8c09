import type { CapturedText } from '../../core/captures.ts'
import type { Json } from '../../core/json.ts'
import { repeatsKey } from '../../lib/json-text.ts'
import type { Redactor } from './redactor.ts'

/**
 * A JSON value as text for capture: redacted, and cut after `maxBytes`. Text that needs neither has the original bytes,
 * so that numbers stay exact and the call can be repeated. Values above the limit are never parsed.
 */
export function captureJson(redactor: Redactor, json: Json, maxBytes: number): CapturedText {
  const original = json.bytes
  const bytes = original.length
  if (bytes <= maxBytes) {
    const text = original.toString('utf8')
    const { value } = json
    const clean = redactor.whole(value)
    // Also search the text itself if it has numbers that were rounded in parsing: one of them may be a secret.
    const unchanged = longNumber.test(text) ? redactor.line(text) : text
    // Parsing keeps only the last value of a repeated key, so write the parsed text.
    const same = clean === value && !repeatsKey(original, value)
    const concealed = same ? unchanged : (JSON.stringify(clean) ?? 'null')
    if (concealed.length <= maxBytes) return { text: concealed, bytes, truncated: false, redacted: concealed !== text }
    return { text: concealed.slice(0, maxBytes), bytes, truncated: true, redacted: true }
  }
  // Redaction needs some text beyond the cut, to find a secret that crosses it.
  const read = original.subarray(0, maxBytes + searchedBeyond).toString('utf8')
  const text = redactor.beginning(read, Math.max(read.length - searchedBeyond, 0))
  return { text, bytes, truncated: true, redacted: !read.startsWith(text) }
}

const longNumber = /\d{15}/

/** More than the longest ordinary secret, even when encoded. */
const searchedBeyond = 4096
