import { isUtf8 } from 'node:buffer'

const LINE_FEED = 0x0a
const RETURN = 0x0d
const SPACE = 0x20

/**
 * JSON on one line, as stdio and event streams frame it. Line breaks can only stand between JSON tokens,
 * so a space in their place changes nothing; the bytes are copied only where there is something to change.
 */
export function oneLine(bytes: Buffer): Buffer {
  if (!bytes.includes(LINE_FEED) && !bytes.includes(RETURN)) return bytes
  const copy = Buffer.from(bytes)
  for (let at = copy.indexOf(LINE_FEED); at >= 0; at = copy.indexOf(LINE_FEED, at + 1)) copy[at] = SPACE
  for (let at = copy.indexOf(RETURN); at >= 0; at = copy.indexOf(RETURN, at + 1)) copy[at] = SPACE
  return copy
}

/** Received bytes as they may be passed on: no byte order mark, one line, and U+FFFD for what is not UTF-8. */
export function carriable(received: Buffer): Buffer {
  const marked = received[0] === 0xef && received[1] === 0xbb && received[2] === 0xbf
  const bytes = marked ? received.subarray(3) : received
  return oneLine(isUtf8(bytes) ? bytes : Buffer.from(bytes.toString('utf8')))
}
