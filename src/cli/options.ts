import { availableParallelism } from 'node:os'
import { InvalidArgumentError, Option } from 'commander'
import { durationUnits, parseDuration } from '../lib/duration.ts'

/** An option of a command, with the type of its value. */
export type TypedOption<Value> = Option & { readonly type?: { readonly value: Value } }

/** The options of a command by the names under which the command gets them. */
export type TypedOptions = Readonly<Record<string, TypedOption<unknown>>>

type ValueOf<One> = One extends TypedOption<infer Value> ? Value : never
type Optional<All> = { [Name in keyof All]: undefined extends ValueOf<All[Name]> ? Name : never }[keyof All]

/** The values of options. Those without a default may be absent. */
export type OptionValues<All> = { readonly [Name in Exclude<keyof All, Optional<All>>]: ValueOf<All[Name]> } & {
  readonly [Name in Optional<All>]?: ValueOf<All[Name]>
}

/** The type of an option without its own parser: a switch, one that turns something off, or text. */
type Written<Flags> = Flags extends `--no-${string}`
  ? boolean
  : Flags extends `${string}<${string}`
    ? string | undefined
    : boolean | undefined

/** An option as commander writes it, such as `-f, --follow`. `parse` may reject a value, or add it to those before it. */
export function option<const Flags extends string>(flags: Flags, about: string): TypedOption<Written<Flags>>
export function option<Value>(
  flags: string,
  about: string,
  parse: (text: string, before?: Value) => Value,
): TypedOption<Value | undefined>
export function option(flags: string, about: string, parse?: (text: string) => unknown) {
  const made = new Option(flags, about)
  return parse ? made.argParser(parse) : made
}

/** Parses an option that can be repeated. */
export const collect = (value: string, before: readonly string[] = []): readonly string[] => [...before, value]

export const choice = <const Choice extends string>(
  flags: string,
  about: string,
  choices: readonly Choice[],
): TypedOption<Choice | undefined> => new Option(flags, about).choices(choices)

/** Gives an option a default, which the help shows as `shown`. */
export const withDefault = <Value>(
  made: TypedOption<Value | undefined>,
  value: NonNullable<Value>,
  shown?: string,
): TypedOption<Value> => made.default(value, shown) as TypedOption<Value>

/** A duration with a default. */
export const durationOption = (flags: string, about: string, initial: string) =>
  withDefault(option(flags, about, durationMs), durationMs(initial), initial)

/** Makes an option one without which the command does not run. */
export const mandatory = (made: TypedOption<string | undefined>) =>
  made.makeOptionMandatory() as Option as TypedOption<string>

/** Parses `500ms`, `30s`, `5m` or `1h`, as in the configuration, to milliseconds. */
export function durationMs(text: string): number {
  const ms = parseDuration(text)
  if (ms === undefined) throw new InvalidArgumentError('Expected a duration such as 500ms, 30s, 5m or 1h.')
  if (ms < 1 || ms > 2 ** 31 - 1) throw new InvalidArgumentError('Expected a duration between 1ms and 24 days.')
  return ms
}

const maxDays = 3_650

/** Parses `30m`, `12h` or `90d`, used for key lifetimes, to milliseconds. */
export function lifetimeMs(text: string): number {
  const ms = /^\d+[mhd]$/.test(text.trim()) ? parseDuration(text) : undefined
  if (ms === undefined) throw new InvalidArgumentError('Expected a duration such as 30m, 12h or 90d.')
  if (ms > 0 && ms <= maxDays * durationUnits.d) return ms
  throw new InvalidArgumentError(`Expected a duration between 1m and ${maxDays}d.`)
}

const wholeNumber =
  (min: number, max: number, expected = `a number from ${min} to ${max}`) =>
  (text: string): number => {
    const number = Number(text)
    if (/^\d+$/.test(text) && number >= min && number <= max) return number
    throw new InvalidArgumentError(`Expected ${expected}.`)
  }

export const portNumber = wholeNumber(0, 65_535, 'a number from 0 (any free port) to 65535')
export const recordCount = wholeNumber(0, 1_000_000)
export const pageSize = wholeNumber(1, 1_000_000)
const workerNumber = wholeNumber(1, 99, 'auto (one per core), or a number from 1 to 99')

export const workerCount = (text: string): number => (text === 'auto' ? availableParallelism() : workerNumber(text))

const minMemory = 64 * 1024 ** 2

/** A size such as `256M`, in bytes. */
export function memorySize(text: string): number {
  const [, count, unit] = /^(\d{1,6})(M|G)(?:i?B)?$/i.exec(text) ?? []
  const bytes = Number(count) * 1024 ** (unit?.toUpperCase() === 'G' ? 3 : 2)
  if (bytes >= minMemory) return bytes
  throw new InvalidArgumentError('Expected a size such as 192M or 1G, at least 64M.')
}

export const auditDecisions = ['allow', 'deny', 'error', 'timeout']

export function auditDecision(text: string): string {
  if (auditDecisions.includes(text.toLowerCase())) return text.toLowerCase()
  throw new InvalidArgumentError(`Expected one of ${auditDecisions.join(', ')}.`)
}
