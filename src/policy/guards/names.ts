import { readAs } from '../../core/lookalikes.ts'
import type { GuardConfig } from './guard.ts'

/** Names repeat from call to call; more different ones than this are made up by a caller. */
const maxRemembered = 4096
const maxLength = 256

/** Remembers what was found out about a name. */
function remembered<Found>(find: (name: string) => Found): (name: string) => Found {
  const known = new Map<string, Found>()
  return (name) => {
    const before = known.get(name)
    if (before !== undefined) return before
    const found = find(name)
    if (name.length <= maxLength) {
      if (known.size >= maxRemembered) known.clear()
      known.set(name, found)
    }
    return found
  }
}

/** Letters and digits alone, in lower case. Twice, because two letters fold to ASCII in one direction only. */
const plain = remembered((name) =>
  readAs(name)
    .toUpperCase()
    .toLowerCase()
    .replace(/[^\p{L}\p{N}]/gu, ''),
)

/**
 * Whether a member is a spelling of a guarded one. Some servers match names without regard to case (Go) or to separators,
 * and look-alike letters, width or surrounding space must not hide one either.
 */
export const isSpelling = (name: string, member: string): boolean =>
  name === member || (plain(name) === plain(member) && plain(member) !== '')

/** Last words of names that hold such a value: `file`, `targetDir`, `log_file`. */
const nouns: Readonly<Record<GuardConfig['kind'], ReadonlySet<string>>> = {
  path: setOf('path file filename filepath pathname dir directory dirname folder uri url'),
  sql: setOf('sql query statement stmt'),
  url: setOf('url uri href link endpoint'),
}

/** Whole names: alone they mean such a value, in others they are about something else. */
const whole: Readonly<Record<GuardConfig['kind'], ReadonlySet<string>>> = {
  path: setOf(
    'source src destination dest dst cwd workdir basedir rootdir fullpath abspath realpath infile outfile inputfile outputfile sourcefile targetfile sourcepath targetpath destinationpath oldpath newpath logfile',
  ),
  sql: setOf('sqlquery sqlstatement sqltext rawsql rawquery querytext'),
  url: setOf('website webpage site weburl targeturl baseurl imageurl callbackurl webhookurl sourceurl redirecturl'),
}

/** Whether the name of an argument suggests that it holds what a guard of this kind looks at. */
export const suggests: Readonly<Record<GuardConfig['kind'], (name: string) => boolean>> = {
  path: remembered((name) => suggestsKind('path', name)),
  sql: remembered((name) => suggestsKind('sql', name)),
  url: remembered((name) => suggestsKind('url', name)),
}

function suggestsKind(kind: GuardConfig['kind'], name: string): boolean {
  const words = readAs(name)
    .replace(/(?<=[a-z0-9])(?=[A-Z])/g, ' ')
    .toLowerCase()
    .split(/[^\p{L}\p{N}]+/u)
    .map(withoutNumber)
    .filter((word) => word !== '')
  const together = words.join('')
  return nouns[kind].has(words.at(-1) ?? '') || nouns[kind].has(together) || whole[kind].has(together)
}

/** Numbers at the end count copies: `path2`, `file_1`, `path[0]`. The words looked for are short. */
const withoutNumber = (word: string): string => (word.length > 32 ? word : word.replace(/\p{N}+$/u, ''))

/** Each word with its plural. */
function setOf(list: string): ReadonlySet<string> {
  return new Set(list.split(' ').flatMap((word) => [word, `${word}s`, word.replace(/y$/, 'ies')]))
}
