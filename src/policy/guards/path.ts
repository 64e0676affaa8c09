import { lstat, realpath } from 'node:fs/promises'
import { join, parse, posix, sep, win32 } from 'node:path'
import type { Guard, GuardedValue, RefuseArgument } from './selector.ts'

/** Max characters in a path. No file system accepts longer paths. */
const maxPath = 4096
/**
 * Folders that differ for each process: `/proc/self/cwd` is one folder for the gateway and another for the server, and
 * `/dev/fd` is a link to such a folder. `/dev/shm` is an ordinary folder, in memory.
 */
const ofEachProcess = /^\/(?:proc|dev(?!\/shm(?:\/|$)))(?:\/|$)/
const controlCharacter = /[\0-\x1f\x7f-\x9f]/

/**
 * A guard that keeps paths inside the roots (F9). Paths must be absolute: the meaning of a relative path depends on the
 * server's working directory, which the gateway does not know. A link may change after this check and before the server
 * uses it, so only trusted programs should be able to create links in the roots.
 */
export function createPathGuard(
  { roots }: { readonly roots: readonly string[] },
  refuse: RefuseArgument,
  platform = process.platform,
): Guard {
  const { normalize, sep } = platform === 'win32' ? win32 : posix
  const written = roots.map((root) => withoutEnd(normalize(root), sep))
  const hint = `use a path inside ${joinRoots(roots)}`

  const rootOf = (path: string) => written.find((root) => path === root || path.startsWith(root + sep))

  /** Every location that the path may refer to. The root is not decoded, because the operator chose its characters. */
  const places = (path: string): readonly string[] => {
    const plain = normalize(path)
    const root = rootOf(plain) ?? ''
    return [...new Set(pathReadings(plain.slice(root.length))?.map((rest) => normalize(root + rest)))]
  }

  const check = async ({ at, text }: GuardedValue, folders: readonly string[]) => {
    const wrong = misshapen(text, platform)
    if (wrong) throw refuse(at, `${wrong}; ${hint}`)
    const all = pathReadings(text)
    const meant = places(text)
    if (!all || meant.length === 0 || all.some((reading) => controlCharacter.test(reading))) {
      throw refuse(at, `is encoded; ${hint} without encoding`)
    }
    if (all.some(climbs)) throw refuse(at, `leaves its folder with a form of ".."; ${hint} without ".."`)
    // Links cannot lead out of `/`, and the server may be on another machine, with other links.
    if (written.includes('')) return
    for (const place of meant) {
      if (ofEachProcess.test(place) && rootOf(place) === undefined) {
        throw refuse(at, `goes through a folder that differs for each process; ${hint}`)
      }
      const real = await traced(place, at)
      if (!folders.some((folder) => isInside(folder, real))) {
        throw refuse(at, `is outside the allowed folders after resolving symbolic links; ${hint}`)
      }
    }
  }

  const traced = async (path: string, at: string) => {
    try {
      return await realPath(path)
    } catch (error) {
      throw error instanceof Untraceable ? refuse(at, `${error.message}; ${hint}`) : error
    }
  }

  return async (values) => {
    // Resolve the roots each time: an operator may change a link while the gateway is running.
    const folders = await Promise.all(written.map((root) => traced(root === '' ? sep : root, values[0]!.at)))
    for (const value of values) await check(value, folders)
  }
}

function misshapen(path: string, platform: NodeJS.Platform): string | undefined {
  if (path.length > maxPath) return 'is too long for a path'
  if (controlCharacter.test(path)) return 'contains control characters'
  if (/^[a-z][a-z0-9+.-]+:/i.test(path)) return 'is a URL, not a path'
  if (path.startsWith('~')) return 'starts with ~, which is not expanded here'
  if (/^[\\/]{2}/.test(path)) return 'starts with two slashes'
  return platform === 'win32' ? misshapenOnWindows(path) : path.startsWith('/') ? undefined : 'is not an absolute path'
}

function misshapenOnWindows(path: string): string | undefined {
  if (!/^[a-z]:[\\/]/i.test(path)) return 'is not an absolute path'
  const names = path.slice(3).split(/[\\/]/)
  if (names.some((name) => name.includes(':'))) return 'refers to an alternate data stream'
  const device = /^(con|prn|aux|nul|conin\$|conout\$|(com|lpt)[0-9¹²³])\s*(\.|$)/i
  return names.some((name) => device.test(name)) ? 'refers to a device' : undefined
}

const withoutEnd = (path: string, sep: string) => (path.endsWith(sep) ? path.slice(0, -1) : path)

function joinRoots(roots: readonly string[]): string {
  const shown = roots.slice(0, 3)
  return roots.length > shown.length ? `${shown.join(', ')} or another allowed folder` : shown.join(' or ')
}

/** Thrown if a path cannot be verified. The message continues the sentence "The argument … ". */
class Untraceable extends Error {}

/**
 * The real location of an absolute path. Symbolic links are resolved in the part that exists, and the rest is kept. The
 * result uses the file system's letter case, so it can be compared directly on every platform.
 */
async function realPath(path: string): Promise<string> {
  const whole = await resolvePath(path)
  if (whole !== undefined) return whole
  const { root } = parse(path)
  const names = path.slice(root.length).split(sep)
  let real = (await resolvePath(root)) ?? root
  // Start at the top, so that the search ends at the first missing folder, however long the path is.
  for (const [index, name] of names.entries()) {
    const next = await resolvePath(join(real, name))
    if (next === undefined) return join(await unlessLink(join(real, name)), ...names.slice(index + 1))
    real = next
  }
  return real
}

/** The path itself. Throws if it is a dangling link, because writing to it would create a file at its target. */
async function unlessLink(missing: string): Promise<string> {
  const found = await unlessMissing(lstat(missing))
  if (found === undefined) return missing
  throw new Untraceable('is a symbolic link to something that does not exist')
}

const resolvePath = (path: string): Promise<string | undefined> => unlessMissing(realpath(path))

async function unlessMissing<T>(work: Promise<T>): Promise<T | undefined> {
  try {
    return await work
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOENT' || code === 'ENOTDIR') return undefined
    if (code === 'ELOOP') throw new Untraceable('contains a loop of symbolic links')
    if (code === 'ENAMETOOLONG') throw new Untraceable('has a name that is too long')
    throw new Untraceable('could not be checked, because the gateway has no access to it')
  }
}

/** Whether a path is inside a folder; both must be real paths. Compares whole names: `/data-old` is not in `/data`. */
function isInside(folder: string, path: string): boolean {
  const outer = pathParts(folder)
  const inner = pathParts(path)
  return outer.length <= inner.length && outer.every((name, index) => name === inner[index])
}

const pathParts = (path: string) => path.split(sep).filter((name) => name !== '')

/** Max layers of percent encoding. No legitimate path has more. */
const maxEncodings = 4

/**
 * All ways in which a later component may interpret a path: unchanged, percent-decoded any number of times, and each of
 * these with look-alike dots and slashes, backslashes, invisible characters and trailing dots normalized. A path is
 * safe only if all interpretations are safe. Undefined if there are too many layers of encoding.
 */
export function pathReadings(path: string): readonly string[] | undefined {
  const found = new Set<string>()
  let current = path
  for (let layer = 0; layer <= maxEncodings; layer++) {
    found.add(current)
    found.add(foldPath(current))
    const decoded = percentDecoded(current)
    if (decoded === current) return [...found]
    current = decoded
  }
  return undefined
}

/** Whether a path segment refers to the parent folder: `..`, also with spaces, more dots or parameters. */
export function climbs(reading: string): boolean {
  return reading.split(/[/\\]/).some((part) => {
    const name = part.split(/[;:]/, 1)[0] as string
    return /^[.\s]*$/.test(name) && name.indexOf('.') !== name.lastIndexOf('.')
  })
}

const slashes = /[\\\u2044\u2215\u2216\u2571\u2572\u27cb\u27cd\u29f5\u29f8\u29f9\u3033\u{1f67c}]/gu
const dots = /[\u0660\u06d4\u06f0\u0701\u0702\u2024\u3002\ua4f8\ufe12\u{10a50}\u{1d16d}]/gu
const invisibleCharacter = /[\p{Cf}\p{Mn}\p{Default_Ignorable_Code_Point}\ufffd]/gu

function foldPath(path: string): string {
  const plain = path.normalize('NFKC').replace(invisibleCharacter, '').replace(slashes, '/').replace(dots, '.')
  // Windows drops trailing dots and spaces. Keep a name that consists only of these, so that `climbs` detects it.
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

/** Decodes one layer of percent encoding, in forms such as `%2e` and `%u002e`. */
function percentDecoded(text: string): string {
  if (!text.includes('%')) return text
  const wide = text.replace(/%u([0-9a-f]{4})/gi, (_, digits) => String.fromCharCode(Number.parseInt(digits, 16)))
  const bytes = Buffer.from(wide.toWellFormed())
  const decoded: number[] = []
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at] as number
    const value = byte === 0x25 ? hexByte(bytes, at + 1) : undefined
    decoded.push(value ?? byte)
    if (value !== undefined) at += 2
  }
  return lenientUtf8(decoded)
}

function hexByte(bytes: Buffer, at: number): number | undefined {
  const digits = bytes.toString('latin1', at, at + 2)
  return /^[0-9a-f]{2}$/i.test(digits) ? Number.parseInt(digits, 16) : undefined
}

/** Decodes UTF-8 like lenient decoders: accepts overlong forms, and turns invalid bytes into U+FFFD. */
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
