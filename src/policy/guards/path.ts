import { posix, win32 } from 'node:path'
import type { Guard, Guarded, Refuse } from './guard.ts'
import { climbs, readings } from './path-readings.ts'
import { inside, realPath, Untraceable } from './path-real.ts'

export interface PathGuardConfig {
  readonly roots: readonly string[]
}

/** Longer ones no file system takes. */
const longest = 4096
/** `/proc/self/cwd` is where the gateway runs when the gateway looks, and where the server runs when the server does. */
const ofEachProcess = /^\/(?:proc|dev)(?:\/|$)/
const control = /[\0-\x1f\x7f-\x9f]/

/**
 * Keeps paths inside the roots (F9). They must be absolute: what a relative one means depends on the folder that the
 * server runs in, which the gateway cannot know. Between this check and the server's use of the path a link may still
 * be changed, so the roots should be folders that only trusted programs write links into.
 */
export function pathGuard({ roots }: PathGuardConfig, refuse: Refuse, platform = process.platform): Guard {
  const { normalize, sep } = platform === 'win32' ? win32 : posix
  const written = roots.map((root) => withoutEnd(normalize(root), sep))
  const hint = `use a path inside ${spell(roots)}`

  const rootOf = (path: string) => written.find((root) => path === root || path.startsWith(root + sep))

  /** Every place that the path may mean. The root it is written under stays as it is: its odd letters are the operator's. */
  const places = (path: string): readonly string[] => {
    const plain = normalize(path)
    const root = rootOf(plain) ?? ''
    return [...new Set(readings(plain.slice(root.length))?.map((rest) => normalize(root + rest)))]
  }

  const check = async ({ at, text }: Guarded, folders: readonly string[]) => {
    const wrong = misshapen(text, platform)
    if (wrong) throw refuse(at, `${wrong}; ${hint}`)
    const all = readings(text)
    const meant = places(text)
    if (!all || meant.length === 0 || all.some((reading) => control.test(reading))) {
      throw refuse(at, `is encoded; ${hint}, written plainly`)
    }
    if (all.some(climbs)) throw refuse(at, `climbs out of its folder with ".." in some spelling; ${hint}, without ".."`)
    for (const place of meant) {
      if (ofEachProcess.test(place) && rootOf(place) === undefined) {
        throw refuse(at, `leads through a folder that is another one for every process; ${hint}`)
      }
      const real = await traced(place, at)
      if (!folders.some((folder) => inside(folder, real))) {
        throw refuse(at, `leads outside the allowed folders, symbolic links followed; ${hint}`)
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
    // Roots are looked up each time: an operator may point a link elsewhere while the gateway runs.
    const folders = await Promise.all(written.map((root) => traced(root === '' ? sep : root, values[0]!.at)))
    for (const value of values) await check(value, folders)
  }
}

/** What is wrong with the form of a path, if anything. */
function misshapen(path: string, platform: NodeJS.Platform): string | undefined {
  if (path.length > longest) return 'is too long for a path'
  if (control.test(path)) return 'has control characters'
  if (/^[a-z][a-z0-9+.-]+:/i.test(path)) return 'is a URL, not a path'
  if (path.startsWith('~')) return 'starts with ~, which is not expanded here'
  if (/^[\\/]{2}/.test(path)) return 'starts with two slashes'
  return platform === 'win32' ? misshapenOnWindows(path) : path.startsWith('/') ? undefined : 'is not an absolute path'
}

function misshapenOnWindows(path: string): string | undefined {
  if (!/^[a-z]:[\\/]/i.test(path)) return 'is not an absolute path'
  const names = path.slice(3).split(/[\\/]/)
  if (names.some((name) => name.includes(':'))) return 'names a data stream'
  const device = /^(con|prn|aux|nul|conin\$|conout\$|(com|lpt)[0-9¹²³])\s*(\.|$)/i
  return names.some((name) => device.test(name)) ? 'names a device' : undefined
}

const withoutEnd = (path: string, sep: string) => (path.endsWith(sep) ? path.slice(0, -1) : path)

/** A few of the roots, as people write them. */
function spell(roots: readonly string[]): string {
  const shown = roots.slice(0, 3)
  return roots.length > shown.length ? `${shown.join(', ')} or another allowed folder` : shown.join(' or ')
}
