/** More layers of percent encoding than this are never an accident. */
const maxLayers = 4

/**
 * The ways in which somebody further on may read a path: as it is, percent-decoded any number of times, and each of
 * these with look-alikes of dots and slashes, backslashes, invisible characters and trailing dots taken for what they
 * resemble. A path is harmless when all of them are. `undefined` if it is wrapped deeper than anybody honest would.
 */
export function readings(path: string): readonly string[] | undefined {
  const found = new Set<string>()
  let current = path
  for (let layer = 0; layer <= maxLayers; layer++) {
    found.add(current)
    found.add(folded(current))
    const decoded = percentDecoded(current)
    if (decoded === current) return [...found]
    current = decoded
  }
  return undefined
}

/** Whether some part of the path means "the folder above": `..`, also with spaces, more dots or parameters. */
export function climbs(reading: string): boolean {
  return reading.split(/[/\\]/).some((part) => {
    const name = part.split(/[;:]/, 1)[0] as string
    return /^[.\s]*$/.test(name) && name.indexOf('.') !== name.lastIndexOf('.')
  })
}

const slashes = /[\\\u2044\u2215\u2216\u2571\u2572\u27cb\u27cd\u29f5\u29f8\u29f9\u3033\u{1f67c}]/gu
const dots = /[\u0660\u06d4\u06f0\u0701\u0702\u2024\u3002\ua4f8\ufe12\u{10a50}\u{1d16d}]/gu
const invisible = /[\p{Cf}\p{Mn}\p{Default_Ignorable_Code_Point}\ufffd]/gu

function folded(path: string): string {
  const plain = path.normalize('NFKC').replace(invisible, '').replace(slashes, '/').replace(dots, '.')
  // Windows drops dots and spaces at the end of each name; names made of nothing else are left for `climbs` to see.
  return plain
    .split('/')
    .map((part) => withoutTail(part) || part)
    .join('/')
}

function withoutTail(part: string): string {
  let end = part.length
  while (end > 0 && (part[end - 1] === '.' || part[end - 1] === ' ')) end--
  return part.slice(0, end)
}

/** Takes one layer of `%2e` and `%u002e` off. */
function percentDecoded(text: string): string {
  if (!text.includes('%')) return text
  const wide = text.replace(/%u([0-9a-f]{4})/gi, (_, digits) => String.fromCharCode(Number.parseInt(digits, 16)))
  const bytes = Buffer.from(wide.toWellFormed())
  const decoded: number[] = []
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at] as number
    const value = byte === 0x25 ? hexadecimal(bytes, at + 1) : undefined
    decoded.push(value ?? byte)
    if (value !== undefined) at += 2
  }
  return lenientUtf8(decoded)
}

function hexadecimal(bytes: Buffer, at: number): number | undefined {
  const digits = bytes.toString('latin1', at, at + 2)
  return /^[0-9a-f]{2}$/i.test(digits) ? Number.parseInt(digits, 16) : undefined
}

/** UTF-8 as careless decoders read it: overlong forms mean what their bits say, broken bytes become U+FFFD. */
function lenientUtf8(bytes: readonly number[]): string {
  let text = ''
  for (let at = 0; at < bytes.length; at++) {
    const lead = bytes[at] as number
    const more = lead < 0xc0 ? 0 : lead < 0xe0 ? 1 : lead < 0xf0 ? 2 : 3
    if (more === 0) {
      text += lead < 0x80 ? String.fromCharCode(lead) : '\ufffd'
      continue
    }
    const rest = bytes.slice(at + 1, at + 1 + more)
    const continued = rest.length === more && rest.every((byte) => byte >> 6 === 2)
    const point = rest.reduce((bits, byte) => (bits << 6) | (byte & 0x3f), lead & (0x3f >> more))
    if (continued) at += more
    text += continued && point <= 0x10ffff ? String.fromCodePoint(point) : '\ufffd'
  }
  return text
}
