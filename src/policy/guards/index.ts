import type { Clock } from '../../core/clock.ts'
import { type ErrorCode, ToolwayError } from '../../core/errors.ts'
import type { Guard, GuardConfig, Guarded, Refuse } from './guard.ts'
import { pathGuard } from './path.ts'
import { guardedParts } from './resource-uri.ts'
import { parseSelector, type Selector, select } from './selector.ts'
import { sqlGuard } from './sql.ts'
import { type Lookup, urlGuard } from './url.ts'

/**
 * Looks at the arguments of a tool or prompt and at the URI of a resource. Throws INVALID_PATH, UNSAFE_SQL or UNSAFE_URL;
 * at once and without a promise where nothing is guarded.
 */
export type CheckArguments = (args: Readonly<Record<string, unknown>>, uri?: string) => Promise<void> | undefined

export interface GuardOptions {
  /** Whose arguments these are; errors and rules name it. */
  readonly server: string
  readonly clock?: Clock
  readonly lookup?: Lookup
}

/** Checking costs time for each value; no honest call names more. */
const mostValues = 256

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
  return (args, uri) => {
    const work: (() => Promise<void>)[] = []
    for (const { collect, guard } of compiled) {
      const values = collect(args, uri)
      if (values.length > 0) work.push(() => guard(values))
    }
    return work.length === 0 ? undefined : inTurn(work)
  }
}

interface Compiled {
  collect(args: Readonly<Record<string, unknown>>, uri: string | undefined): readonly Guarded[]
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
  return {
    collect(args, uri) {
      if (uri === undefined) return selectors.flatMap((selector) => textsOf(selector, args, refuse))
      return guardedParts(config.kind, uri).map((part) => ({ at: 'uri', text: sound('uri', part, refuse) }))
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
  if ('expected' in found) throw refuse(found.at, `must be ${found.expected}`)
  if (found.length > mostValues) throw refuse(selector.text, `has more than ${mostValues} values; send fewer at a time`)
  return found.map(({ at, value }) => ({ at, text: sound(at, value, refuse) }))
}

function sound(at: string, value: unknown, refuse: Refuse): string {
  if (typeof value !== 'string') throw refuse(at, 'must be a string')
  // The server gets the bytes as they came and may read broken ones as a quote or a dot, which we cannot see here.
  if (!value.isWellFormed() || value.includes('\uFFFD')) throw refuse(at, 'has characters that are not valid Unicode')
  if (value.includes('\0')) throw refuse(at, 'has a NUL character')
  return value
}

async function inTurn(work: readonly (() => Promise<void>)[]): Promise<void> {
  for (const check of work) await check()
}
