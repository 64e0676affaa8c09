import { isDeepStrictEqual } from 'node:util'
import type { Config } from '../config/schema.ts'

/** What two configurations do not have in common. */
export interface ConfigDifference {
  readonly servers: {
    readonly added: readonly string[]
    readonly removed: readonly string[]
    readonly changed: readonly string[]
  }
  /** Sections that are different from now on, `mcpServers` aside. */
  readonly sections: readonly string[]
  /** Keys whose change cannot be put into force while Toolway runs. */
  readonly atNextStart: readonly string[]
}

/** What is open, or has been promised to somebody, stays as it is until the next start. */
const fixed = ['server', 'stores', 'audit', 'telemetry'] as const
const live: ReadonlySet<string> = new Set(['audit.arguments', 'audit.redact', 'telemetry.traces'])

export function compareConfigs(before: Config, after: Config): ConfigDifference {
  const old = new Map(Object.entries(before.mcpServers))
  const now = new Map(Object.entries(after.mcpServers))
  const next = keepFixedSettings(before, after)
  const sections = (Object.keys(next) as (keyof Config)[]).filter(
    (section) => section !== 'mcpServers' && !isDeepStrictEqual(before[section], next[section]),
  )
  return {
    servers: {
      added: [...now.keys()].filter((name) => !old.has(name)),
      removed: [...old.keys()].filter((name) => !now.has(name)),
      changed: [...now]
        .filter(([name, server]) => old.has(name) && !isDeepStrictEqual(old.get(name), server))
        .map(([name]) => name),
    },
    sections,
    atNextStart: fixed.flatMap((section) => changedKeys(section, before[section], after[section])),
  }
}

const changedKeys = (section: string, before: object, after: object): string[] => {
  const [old, now] = [before, after] as Record<string, unknown>[]
  return Object.keys({ ...old, ...now })
    .filter((key) => !isDeepStrictEqual(old?.[key], now?.[key]))
    .map((key) => `${section}.${key}`)
    .filter((key) => !live.has(key))
}

/** What of the later one can be put into force while the earlier one runs: the rest stays until the next start. */
export function keepFixedSettings(before: Config, after: Config): Config {
  const kept = fixed.map((section) => {
    const changing = Object.entries(after[section]).filter(([key]) => live.has(`${section}.${key}`))
    const processState = Object.entries(before[section]).filter(([key]) => !live.has(`${section}.${key}`))
    return [section, Object.fromEntries([...processState, ...changing])]
  })
  return { ...after, ...Object.fromEntries(kept) }
}

export const isEmpty = ({ servers, sections }: ConfigDifference): boolean =>
  servers.added.length + servers.removed.length + servers.changed.length + sections.length === 0

/** Whether the values under this key may be told; where not, only that they have changed. */
export type MayShow = (path: readonly string[]) => boolean

/** Sections whose members have names that people gave them. */
const named: Readonly<Record<string, string>> = {
  mcpServers: 'server',
  agents: 'agent',
  models: 'model',
  sinks: 'sink',
}

/** Nobody reads more, and a configuration may have been replaced by quite another. */
const maxTold = 100
const maxValue = 100

/** What is otherwise in a configuration: `server memory added`, `limits.perMinute: 60 → 120`. */
export function describeChanges(before: Config, after: Config, mayTell: MayShow): string[] {
  const { atNextStart } = compareConfigs(before, after)
  const later = (path: string) => atNextStart.some((key) => path === key || path.startsWith(`${key}.`))
  const told: string[] = []

  const compare = (path: readonly string[], old: unknown, now: unknown): void => {
    if (isDeepStrictEqual(old, now)) return
    const [section = '', name] = path
    const thing = path.length === 2 ? named[section] : undefined
    if (thing !== undefined && (old === undefined || now === undefined)) {
      told.push(`${thing} ${name} ${old === undefined ? 'added' : 'removed'}`)
    } else if (isRecord(old) && isRecord(now)) {
      for (const key of new Set([...Object.keys(old), ...Object.keys(now)])) compare([...path, key], old[key], now[key])
    } else {
      const key = path.join('.')
      told.push(`${key}${mayTell(path) ? openly(old, now) : covertly(old, now)}${later(key) ? fromThen : ''}`)
    }
  }

  compare([], before, after)
  return told.length <= maxTold ? told : [...told.slice(0, maxTold), `and ${told.length - maxTold} more`]
}

const fromThen = ' (from the next start on)'

const covertly = (old: unknown, now: unknown): string =>
  old === undefined ? ' added' : now === undefined ? ' removed' : ' changed'

function openly(old: unknown, now: unknown): string {
  if (areWords(old) && areWords(now)) {
    const added = now.filter((word) => !old.includes(word)).map((word) => `${shown(word)} added`)
    const removed = old.filter((word) => !now.includes(word)).map((word) => `${shown(word)} removed`)
    return added.length + removed.length === 0 ? ': another order' : `: ${[...added, ...removed].join(', ')}`
  }
  const isPlain = [old, now].every((value) => typeof value !== 'object')
  return isPlain ? `: ${shown(old)} → ${shown(now)}` : covertly(old, now)
}

function shown(value: unknown): string {
  if (value === undefined) return 'none'
  const text = String(value).replaceAll(/[\u0000-\u001f\u007f-\u009f\u2028\u2029]/g, ' ')
  return text.length > maxValue ? `${text.slice(0, maxValue)}…` : text
}

const areWords = (value: unknown): value is readonly string[] =>
  Array.isArray(value) && value.every((word) => typeof word === 'string')

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** Keys below which a configuration holds secrets, or may: `*` stands for any name. */
const places = [
  'auth',
  'mcpServers.*.env',
  'mcpServers.*.headers',
  'mcpServers.*.auth',
  'mcpServers.*.args',
  'mcpServers.*.command',
  'mcpServers.*.url',
  'models.*.apiKey',
  'models.*.baseUrl',
  'sinks.*.url',
  'sinks.*.headers',
  'sinks.*.arguments',
  'stores.key',
  'stores.redis',
  'stores.postgres',
  'telemetry.traces',
].map((place) => place.split('.'))

/** Whether the values at a key may be told to whoever reads what has changed. */
export const mayShowValue = (path: readonly string[]): boolean =>
  !places.some((place) => place.every((part, index) => part === '*' || part === path[index]))
