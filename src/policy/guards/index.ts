import type { Clock } from '../../core/clock.ts'
import type { Definition } from '../../core/entry.ts'
import { type ErrorCode, ToolwayError } from '../../core/errors.ts'
import type { Guard, GuardConfig, Guarded, Refuse } from './guard.ts'
import { pathGuard } from './path.ts'
import { guardedParts } from './resource-uri.ts'
import { parseSelector, type Selected, type Selector, select } from './selector.ts'
import { sqlGuard } from './sql.ts'
import { undeclaredArguments } from './undeclared.ts'
import { type Lookup, urlGuard } from './url.ts'

/**
 * Checks the arguments of a tool or prompt, or the URI of a resource; `definition` says which arguments are declared.
 * Throws INVALID_PATH, UNSAFE_SQL or UNSAFE_URL; synchronously and without a promise where nothing is guarded.
 */
export type CheckArguments = (
  args: Readonly<Record<string, unknown>>,
  uri?: string,
  definition?: Definition,
) => Promise<void> | undefined

export interface GuardOptions {
  /** Whose arguments these are; errors and rules name it. */
  readonly server: string
  readonly clock?: Clock
  readonly lookup?: Lookup
}

/** Each value costs time to check; no honest call names more. */
const maxValues = 256
const tooMany = `has more than ${maxValues} values; send fewer at a time`

const codes: Readonly<Record<GuardConfig['kind'], ErrorCode>> = {
  path: 'INVALID_PATH',
  sql: 'UNSAFE_SQL',
  url: 'UNSAFE_URL',
}

/** Prepares the guards of one server (F9). `undefined` where there are none, so that arguments need not even be parsed. */
export function compileGuards(guards: readonly GuardConfig[], options: GuardOptions): CheckArguments | undefined {
  if (guards.length === 0) return undefined
  const compiled = guards.map((config, index) =>
    compile(config, `mcpServers.${options.server}.guards[${index}]`, options),
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

interface Compiled {
  collect(
    args: Readonly<Record<string, unknown>>,
    uri: string | undefined,
    definition: Definition | undefined,
  ): readonly Guarded[]
  readonly guard: Guard
}

function compile(config: GuardConfig, rule: string, options: GuardOptions): Compiled {
  const refuse: Refuse = (at, reason) =>
    new ToolwayError(codes[config.kind], `The argument "${at}" ${reason}.`, { server: options.server, rule })
  const selectors = config.arguments.map((text) => {
    const selector = parseSelector(text)
    if (selector) return selector
    // Starting without the guard would let through what the operator meant to stop.
    throw new ToolwayError(
      'INTERNAL',
      `${rule}.arguments: "${text}" is not an argument such as path, paths[] or options.file.`,
    )
  })
  const undeclared = undeclaredArguments(config.kind, selectors)
  return {
    collect(args, uri, definition) {
      if (uri !== undefined) {
        return guardedParts(config.kind, uri).map((part) => ({ at: 'uri', text: sound('uri', part, refuse) }))
      }
      const declared = selectors.flatMap((selector) => textsOf(selector, args, refuse))
      const others = undeclared(args, definition).flatMap((found) => undeclaredTexts(config.kind, found, refuse))
      if (others.length > maxValues) throw refuse(others[0]!.at, tooMany)
      return others.length === 0 ? declared : [...declared, ...others]
    },
    guard: guardOf(config, refuse, options),
  }
}

function guardOf(config: GuardConfig, refuse: Refuse, { clock, lookup }: GuardOptions): Guard {
  switch (config.kind) {
    case 'path':
      return pathGuard(config, refuse)
    case 'sql':
      return sqlGuard(config, refuse)
    case 'url':
      return urlGuard(config, refuse, { clock, lookup })
  }
}

function textsOf(selector: Selector, args: Readonly<Record<string, unknown>>, refuse: Refuse): Guarded[] {
  const found = select(selector, args)
  if ('expected' in found) throw refuse(found.at, `must be ${found.expected}, or left out`)
  if (found.length > maxValues) throw refuse(selector.text, tooMany)
  return found.map(({ at, value }) => ({ at, text: sound(at, value, refuse) }))
}

/** An undeclared argument may be a string or a list of strings, and a path may be written as a URI. */
function undeclaredTexts(kind: GuardConfig['kind'], { at, value }: Selected, refuse: Refuse): Guarded[] {
  const unknown: Refuse = (place, reason) => refuse(place, `${reason}; the tool's schema does not declare it`)
  const items = Array.isArray(value)
    ? value.map((item, index) => [`${at}[${index}]`, item] as const)
    : [[at, value] as const]
  return items.flatMap(([place, item]) => {
    const text = sound(place, item, unknown)
    const parts = kind === 'path' && isUri(text) ? guardedParts('path', text) : [text]
    return parts.map((part) => ({ at: place, text: part }))
  })
}

/** A drive of Windows is not a scheme. */
const isUri = (text: string): boolean => /^[\0-\x20]*[a-z][a-z0-9+.-]+:/i.test(text)

function sound(at: string, value: unknown, refuse: Refuse): string {
  if (value === null) throw refuse(at, 'must be a string, not null; leave it out where there is none')
  if (typeof value !== 'string') throw refuse(at, 'must be a string')
  // The server gets the bytes as they came and may read broken ones as a quote or a dot, which we cannot see here.
  if (!value.isWellFormed() || value.includes('\uFFFD')) throw refuse(at, 'has characters that are not valid Unicode')
  if (value.includes('\0')) throw refuse(at, 'has a NUL character')
  return value
}

async function inTurn(work: readonly (() => Promise<void>)[]): Promise<void> {
  for (const check of work) await check()
}
