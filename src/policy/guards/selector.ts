import type { ServerConfig } from '../../config/schema.ts'
import type { ToolwayError } from '../../core/errors.ts'
import { readAs } from '../../lib/characters.ts'
import { isRecord } from '../../lib/is-record.ts'
import { memoize } from '../../lib/memoize.ts'

/** Where guarded values are in the arguments: `path`, `paths[]`, `options.path`, `items[].url`. */
export interface Selector {
  readonly text: string
  readonly steps: readonly SelectorStep[]
}

export type SelectorStep = { readonly member: string } | 'items'

/** A selected value and its position, such as `items[2].url`. */
export interface Selected {
  readonly at: string
  readonly value: unknown
}

/** Arguments without the expected shape. The caller may be trying to hide a value from the guard. */
export interface Mismatch {
  readonly at: string
  readonly expected: 'an object' | 'a list'
}

/** Parses a selector. Undefined if the selector is invalid. */
export function parseSelector(text: string): Selector | undefined {
  const steps: SelectorStep[] = []
  for (const part of text.split('.')) {
    let member = part
    let lists = 0
    while (member.endsWith('[]')) {
      member = member.slice(0, -2)
      lists++
    }
    if (member === '' || member.includes('[') || member.includes(']')) return undefined
    steps.push({ member }, ...Array<SelectorStep>(lists).fill('items'))
  }
  return { text, steps }
}

/**
 * Finds the values that a selector refers to. An absent argument is not an error here, because the tool's schema
 * decides whether it is required. Null counts as a value, because servers may read it as "all" or as their default.
 */
export function selectValues(
  selector: Selector,
  args: Readonly<Record<string, unknown>>,
  members: MembersOf = comparedMembers,
): readonly Selected[] | Mismatch {
  let found: readonly Selected[] = [{ at: '', value: args }]
  for (const step of selector.steps) {
    const next: Selected[] = []
    for (const { at, value } of found) {
      if (step === 'items') {
        if (!Array.isArray(value)) return { at, expected: 'a list' }
        for (const [index, item] of value.entries()) push(next, `${at}[${index}]`, item)
      } else {
        if (!isRecord(value)) return { at, expected: 'an object' }
        for (const member of members(value)) {
          if (isSpelling(member, step.member))
            push(next, at === '' ? member.name : `${at}.${member.name}`, member.value)
        }
      }
    }
    if (next.length === 0) return next
    found = next
  }
  return found
}

/** A member of an object. Reducing a name takes time, so it is done once for all comparisons of a call. */
export interface Member {
  readonly name: string
  readonly plainName: string
  readonly value: unknown
}

/** The members of an object, whose names will be compared. May throw if there are too many. */
export type MembersOf = (value: object) => readonly Member[]

export const comparedMembers: MembersOf = (value) =>
  Object.entries(value).map(([name, member]) => ({ name, plainName: reduceName(name), value: member }))

const push = (list: Selected[], at: string, value: unknown) => {
  if (value !== undefined) list.push({ at, value })
}

/** Max number of cached names. Names repeat from call to call, so if there are more, a caller is making them up. */
const maxKnownNames = 4096
const maxKnownName = 256

const memoizeName = <Found>(find: (name: string) => Found) => memoize(find, maxKnownNames, maxKnownName)

/** Reduces a name to lower-case letters and digits, via upper case: some letters become ASCII in only one direction. */
const reduceName = memoizeName((name) =>
  readAs(name)
    .toUpperCase()
    .toLowerCase()
    .replace(/[^\p{L}\p{N}]/gu, ''),
)

/**
 * Whether a server may mistake a name for that of a guarded member. Some servers ignore case (Go) or separators, and
 * look-alike letters, width or surrounding space must not hide a member.
 */
export const isSpelling = ({ name, plainName }: Member, wanted: string): boolean =>
  name === wanted || (plainName === reduceName(wanted) && plainName !== '')

/** Words that, at the end of an argument name, suggest a value of this kind: `file`, `targetDir`, `log_file`. */
const endNouns: Readonly<Record<GuardConfig['kind'], ReadonlySet<string>>> = {
  path: setOf('path file filename filepath pathname dir directory dirname folder uri url'),
  sql: setOf('sql query statement stmt'),
  url: setOf('url uri href link endpoint'),
}

/** Argument names that suggest a value of this kind, but only as the whole name, not as one word of a longer name. */
const wholeNames: Readonly<Record<GuardConfig['kind'], ReadonlySet<string>>> = {
  path: setOf(
    'source src destination dest dst cwd workdir basedir rootdir fullpath abspath realpath infile outfile inputfile outputfile sourcefile targetfile sourcepath targetpath destinationpath oldpath newpath logfile',
  ),
  sql: setOf('sqlquery sqlstatement sqltext rawsql rawquery querytext'),
  url: setOf('website webpage site weburl targeturl baseurl imageurl callbackurl webhookurl sourceurl redirecturl'),
}

export const suggests: Readonly<Record<GuardConfig['kind'], (name: string) => boolean>> = {
  path: memoizeName((name) => suggestsKind('path', name)),
  sql: memoizeName((name) => suggestsKind('sql', name)),
  url: memoizeName((name) => suggestsKind('url', name)),
}

function suggestsKind(kind: GuardConfig['kind'], name: string): boolean {
  const words = readAs(name)
    .replace(/(?<=[a-z0-9])(?=[A-Z])/g, ' ')
    .toLowerCase()
    .split(/[^\p{L}\p{N}]+/u)
    .map(withoutNumber)
    .filter((word) => word !== '')
  const together = words.join('')
  return endNouns[kind].has(words.at(-1) ?? '') || endNouns[kind].has(together) || wholeNames[kind].has(together)
}

/** Removes trailing numbers, as in `path2`, `file_1` and `path[0]`, except from long words: those never match. */
const withoutNumber = (word: string): string => (word.length > 32 ? word : word.replace(/\p{N}+$/u, ''))

function setOf(list: string): ReadonlySet<string> {
  return new Set(list.split(' ').flatMap((word) => [word, `${word}s`, word.replace(/y$/, 'ies')]))
}

export type GuardConfig = ServerConfig['guards'][number]

export interface GuardedValue {
  readonly at: string
  readonly text: string
}

/** Checks the guarded values in a call. Rejects with an error from `RefuseArgument` if a value is unsafe. */
export type Guard = (values: readonly GuardedValue[]) => Promise<void>

/** Creates the error for an argument. The reason continues "The argument … ", has no full stop and omits the value. */
export type RefuseArgument = (at: string, reason: string) => ToolwayError
