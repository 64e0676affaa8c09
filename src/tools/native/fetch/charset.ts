/** How many bytes of a page may name its encoding, as browsers have it. */
const head = 1024

/** Text out of bytes: by their mark, the header, the page's own word, and UTF-8 otherwise. Never throws. */
export function decodeText(bytes: Buffer, contentType: string): string {
  const named = markOf(bytes) ?? charsetOf(contentType) ?? declaredIn(bytes) ?? 'utf-8'
  return decoderOf(named).decode(bytes)
}

const charsetOf = (contentType: string): string | undefined =>
  /;\s*charset\s*=\s*"?([\w.:-]{1,40})/i.exec(contentType)?.[1]

function markOf(bytes: Buffer): string | undefined {
  if (bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf) return 'utf-8'
  if (bytes[0] === 0xfe && bytes[1] === 0xff) return 'utf-16be'
  return bytes[0] === 0xff && bytes[1] === 0xfe ? 'utf-16le' : undefined
}

function declaredIn(bytes: Buffer): string | undefined {
  const start = bytes.toString('latin1', 0, head)
  const [, xml] = /^\s{0,9}<\?xml[^>]{0,200}encoding\s*=\s*["']([\w.:-]{1,40})/i.exec(start) ?? []
  const [, meta] = /<meta[^>]{0,200}charset\s*=\s*["']?([\w.:-]{1,40})/i.exec(start) ?? []
  const named = xml ?? meta
  // A page that could be read as ASCII so far is not in UTF-16, whatever it says.
  return named && /^utf-?16/i.test(named) ? 'utf-8' : named
}

function decoderOf(name: string) {
  try {
    return new TextDecoder(name)
  } catch {
    return new TextDecoder()
  }
}
