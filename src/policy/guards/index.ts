import type { Clock } from '../../core/clock.ts'
import type { Definition } from '../../core/entry.ts'
import { type ErrorCode, ToolwayError } from '../../core/errors.ts'
import { declares, type Fields, schemasAt } from '../../core/schema-keywords.ts'
import { isRecord } from '../../lib/is-record.ts'
import { createPathGuard } from './path.ts'
import {
  comparedMembers,
  type Guard,
  type GuardConfig,
  type GuardedValue,
  isSpelling,
  type Member,
  type MembersOf,
  parseSelector,
  type RefuseArgument,
  type Selected,
  type Selector,
  type SelectorStep,
  selectValues,
  suggests,
} from './selector.ts'
import { createSqlGuard } from './sql.ts'
import { type AddressLookup, urlGuard } from './url.ts'

/**
 * Checks the arguments of a tool or prompt, or the URI of a resource. `definition` says which arguments are declared.
 * Throws INVALID_PATH, UNSAFE_SQL or UNSAFE_URL. Synchronous if no guarded value is present.
 */
export type CheckArguments = (args: Fields, uri?: string, definition?: Definition) => Promise<void> | undefined

export interface GuardOptions {
  readonly server: string
  readonly clock?: Clock
  readonly lookup?: AddressLookup
}

/** Max values per guard and call. Each value takes time to check, and legitimate calls have fewer. */
const maxGuardedValues = 256
/** Max members whose names are compared for one selector. A caller can make up any number, and comparing names takes time. */
const maxComparedMembers = 10_000
const tooManyGuarded = `has more than ${maxGuardedValues} values; send fewer at a time`

const codes: Readonly<Record<GuardConfig['kind'], ErrorCode>> = {
  path: 'INVALID_PATH',
  sql: 'UNSAFE_SQL',
  url: 'UNSAFE_URL',
}

/** Compiles one server's guards (F9). Undefined if there are none, so that arguments need not be parsed. */
export function compileGuards(guards: readonly GuardConfig[], options: GuardOptions): CheckArguments | undefined {
  if (guards.length === 0) return undefined
  const compiled = guards.map((config, index) =>
    compileGuard(config, `mcpServers.${options.server}.guards[${index}]`, options),
  )
  return (args, uri, definition) => {
    const work: (() => Promise<void>)[] = []
    for (const { collect, guard } of compiled) {
      const values = collect(args, uri, definition)
      if (values.length > 0) work.push(() => guard(values))
    }
    return work.length === 0 ? undefined : inTurn(work)
  }
}

function compileGuard(config: GuardConfig, rule: string, options: GuardOptions) {
  const refuse: RefuseArgument = (at, reason) =>
    new ToolwayError(codes[config.kind], `The argument "${at}" ${reason}.`, { server: options.server, rule })
  const selectors = config.arguments.map((text) => {
    const selector = parseSelector(text)
    if (selector) return selector
    // Throw: starting without the guard would permit what the operator meant to prevent.
    const problem = `invalid argument selector "${text}"; use a form such as path, paths[] or options.file.`
    throw new ToolwayError('INTERNAL', `${rule}.arguments: ${problem}`)
  })
  const undeclared = undeclaredArguments(config.kind, selectors)
  /** Counts the members for one selector. `read` holds the objects that the call's other selectors have read. */
  const countedWith = (read: Map<object, readonly Member[]>) => (): MembersOf => {
    let count = 0
    return (value) => {
      count += Object.keys(value).length
      if (count > maxComparedMembers) {
        const sentence = `A guard does not check arguments with more than ${maxComparedMembers} members; send fewer at a time.`
        throw new ToolwayError(codes[config.kind], sentence, { server: options.server, rule })
      }
      const members = read.get(value) ?? comparedMembers(value)
      read.set(value, members)
      return members
    }
  }
  return {
    collect(...[args, uri, definition]: Parameters<CheckArguments>): readonly GuardedValue[] {
      if (uri !== undefined)
        return guardedParts(config.kind, uri).map((part) => ({ at: 'uri', text: sound('uri', part, refuse) }))
      const counted = countedWith(new Map())
      const declared = selectors.flatMap((selector) => guardedTexts(selector, args, counted(), refuse))
      const others = undeclared(args, definition, counted).flatMap((found) =>
        undeclaredTexts(config.kind, found, refuse),
      )
      if (others.length > maxGuardedValues) throw refuse(others[0]!.at, tooManyGuarded)
      return others.length === 0 ? declared : [...declared, ...others]
    },
    guard: guardOf(config, refuse, options),
  }
}

function guardOf(config: GuardConfig, refuse: RefuseArgument, { clock, lookup }: GuardOptions): Guard {
  if (config.kind === 'path') return createPathGuard(config, refuse)
  return config.kind === 'sql' ? createSqlGuard(config, refuse) : urlGuard(config, refuse, { clock, lookup })
}

function guardedTexts(selector: Selector, args: Fields, members: MembersOf, refuse: RefuseArgument): GuardedValue[] {
  const found = selectValues(selector, args, members)
  if ('expected' in found) throw refuse(found.at, `must be ${found.expected}, or omitted`)
  if (found.length > maxGuardedValues) throw refuse(selector.text, tooManyGuarded)
  return found.map(({ at, value }) => ({ at, text: sound(at, value, refuse) }))
}

/** The strings in an undeclared argument, which is a string or a list of strings. Paths may be written as URIs. */
function undeclaredTexts(kind: GuardConfig['kind'], { at, value }: Selected, refuse: RefuseArgument): GuardedValue[] {
  const unknown: RefuseArgument = (place, reason) => refuse(place, `${reason}; the tool's schema does not declare it`)
  const items = Array.isArray(value)
    ? value.map((item, index) => [`${at}[${index}]`, item] as const)
    : [[at, value] as const]
  return items.flatMap(([place, item]) => {
    const text = sound(place, item, unknown)
    const parts = kind === 'path' && isUri(text) ? guardedParts('path', text) : [text]
    return parts.map((part) => ({ at: place, text: part }))
  })
}

/** Whether a string starts with a URI scheme of two or more letters. A single letter is a Windows drive. */
const isUri = (text: string): boolean => /^[\0-\x20]*[a-z][a-z0-9+.-]+:/i.test(text)

function sound(at: string, value: unknown, refuse: RefuseArgument): string {
  if (value === null) throw refuse(at, 'must be a string, not null; omit it if there is no value')
  if (typeof value !== 'string') throw refuse(at, 'must be a string')
  // The server gets the original bytes, and may interpret invalid ones as a quote or a dot.
  if (!value.isWellFormed() || value.includes('\uFFFD')) throw refuse(at, 'contains invalid Unicode')
  if (value.includes('\0')) throw refuse(at, 'contains a NUL character')
  return value
}

async function inTurn(work: readonly (() => Promise<void>)[]): Promise<void> {
  for (const check of work) await check()
}

/**
 * The parts of a resource URI that a guard checks. Reading a resource can request a file or an address just like an
 * argument, and servers may read URIs that they do not list. Custom schemes are not checked, because their meaning is
 * unknown.
 */
function guardedParts(kind: GuardConfig['kind'], uri: string): readonly string[] {
  // Parsers skip invisible characters, so remove them: they must not hide a scheme.
  const scheme = /^([a-z][a-z0-9+.-]*):/i.exec(uri.replace(/[\0-\x20]/g, ''))?.[1]?.toLowerCase()
  if (kind === 'url') return scheme !== undefined && ofTheWeb.has(scheme) ? [uri] : []
  if (kind !== 'path') return []
  if (scheme === 'file') return readingsOfFile(uri)
  return scheme?.length === 1 || (scheme === undefined && /^[\s.~/\\]/.test(uri)) ? [uri] : []
}

const ofTheWeb: ReadonlySet<string> = new Set(['http', 'https', 'ws', 'wss', 'ftp', 'sftp'])

/** The paths that a file URI can mean. Some servers cut off the scheme; others parse the URI and drop the query. */
function readingsOfFile(uri: string): readonly string[] {
  // Keep both slashes before a host, so that the path guard refuses it; keep one before an absolute path.
  const path = uri.replace(/^\s*file:(?:\/\/(?=\/))?/i, '')
  const end = path.search(/[?#]/)
  return end === -1 ? [path] : [path, path.slice(0, end)]
}

/**
 * Finds undeclared arguments next to the guarded ones, if their names suggest a value of this kind: servers accept
 * aliases (`file` for `path`) that their schemas do not mention. If a schema forbids additional properties, validation
 * has already refused such arguments.
 */
function undeclaredArguments(
  kind: GuardConfig['kind'],
  selectors: readonly Selector[],
): (args: Fields, definition: Definition | undefined, counted: () => MembersOf) => readonly Selected[] {
  const parents = parentsOf(selectors)
  const suggestsKind = suggests[kind]
  return (args, definition, counted) => {
    const found: Selected[] = []
    for (const { selector, members } of parents) {
      const membersIn = counted()
      const objects = selector.steps.length === 0 ? [{ at: '', value: args }] : selectValues(selector, args, membersIn)
      // Skip arguments of the wrong shape: the guard's own selectors have already refused them.
      if ('expected' in objects) continue
      for (const { at, value } of objects) {
        if (!isRecord(value)) continue
        for (const member of membersIn(value)) {
          const { name } = member
          if (!suggestsKind(name) || members.some((known) => isSpelling(member, known))) continue
          if (!isDeclared(definition, selector.steps, name))
            found.push({ at: at === '' ? name : `${at}.${name}`, value: member.value })
        }
      }
    }
    return found
  }
}

/** The objects along the path to each selected member, including the arguments themselves. */
function parentsOf(selectors: readonly Selector[]) {
  const parents = new Map<string, { steps: readonly SelectorStep[]; members: string[] }>([
    ['[]', { steps: [], members: [] }],
  ])
  for (const { steps } of selectors) {
    for (const [index, step] of steps.entries()) {
      if (step === 'items') continue
      const before = steps.slice(0, index)
      const key = JSON.stringify(before)
      const parent = parents.get(key) ?? { steps: before, members: [] }
      parent.members.push(step.member)
      parents.set(key, parent)
    }
  }
  return [...parents.values()].map(({ steps, members }) => ({ selector: { text: '', steps }, members }))
}

/** Whether a definition declares an argument. Tools declare arguments in a schema, prompts in a list. */
function isDeclared(definition: Definition | undefined, steps: readonly SelectorStep[], name: string): boolean {
  if (definition === undefined) return false
  if (Array.isArray(definition.arguments))
    return definition.arguments.some((argument) => isRecord(argument) && argument.name === name)
  const root = definition.inputSchema
  let schemas: readonly unknown[] = [root]
  for (const step of steps) schemas = schemasAt(schemas, step === 'items' ? undefined : step.member, root)
  return declares(schemas, name, root)
}
