import { isDeepStrictEqual } from 'node:util'
import type { Config } from '../config/schema.ts'
import { secretKindAt } from '../config/schema-lookup.ts'
import { isRecord } from '../lib/is-record.ts'
import { shorten } from '../lib/message-text.ts'

export interface ConfigDifference {
  readonly servers: {
    readonly added: readonly string[]
    readonly removed: readonly string[]
    readonly changed: readonly string[]
  }
  /** Changed sections that apply immediately. `mcpServers` is not listed here. */
  readonly sections: readonly string[]
  /** Changed keys that need a restart. */
  readonly atNextStart: readonly string[]
}

/** Sections that need a restart, because their ports, files and stores are already open. */
const fixed = ['server', 'stores', 'audit', 'history', 'telemetry'] as const
/** Keys in the `fixed` sections that nevertheless apply without a restart. */
const live: ReadonlySet<string> = new Set(['audit.arguments', 'audit.redact', 'telemetry.traces'])
/** Keys that are not settings, with the setting that they follow from. */
const derived: Readonly<Record<string, string>> = { 'stores.common': 'stores.path' }

export function compareConfigs(before: Config, after: Config): ConfigDifference {
  const { mcpServers: old } = before
  const { mcpServers: now } = after
  const common = Object.keys(now).filter((name) => Object.hasOwn(old, name))
  const next = keepFixedSettings(before, after)
  return {
    servers: {
      added: Object.keys(now).filter((name) => !Object.hasOwn(old, name)),
      removed: Object.keys(old).filter((name) => !Object.hasOwn(now, name)),
      changed: common.filter((name) => !isDeepStrictEqual(old[name], now[name])),
    },
    sections: (Object.keys(next) as (keyof Config)[]).filter(
      (section) => section !== 'mcpServers' && !isDeepStrictEqual(before[section], next[section]),
    ),
    atNextStart: fixed.flatMap((section) => changedKeys(section, before[section], after[section])),
  }
}

const changedKeys = (section: string, before: object, after: object): string[] => {
  const [old, now] = [before, after] as Record<string, unknown>[]
  const keys = Object.keys({ ...old, ...now })
    .filter((key) => !isDeepStrictEqual(old?.[key], now?.[key]))
    .map((key) => derived[`${section}.${key}`] ?? `${section}.${key}`)
    .filter((key) => !live.has(key))
  return [...new Set(keys)]
}

/** Returns the new configuration, but with the old values for settings that need a restart. */
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

/** Whether values at this path may be shown. If they may not, a change is reported without its values. */
export type MayShow = (path: readonly string[]) => boolean

/** Sections whose keys are user-defined names, with a noun for one entry. */
const named: Readonly<Record<string, string>> = {
  mcpServers: 'server',
  agents: 'agent',
  models: 'model',
  sinks: 'sink',
}

/** Maximum number of changes to describe, in case the whole configuration is replaced. */
const maxChanges = 100
const maxValue = 100

/** Describes changes, such as `server memory added` or `limits.perMinute: 60 → 120`. */
export function describeChanges(before: Config, after: Config, mayShow: MayShow): string[] {
  const { atNextStart } = compareConfigs(before, after)
  const later = (path: string) => atNextStart.some((key) => path === key || path.startsWith(`${key}.`))
  const changes: string[] = []

  const compare = (path: readonly string[], old: unknown, now: unknown): void => {
    if (isDeepStrictEqual(old, now) || derived[path.join('.')]) return
    const [section = '', name] = path
    const thing = path.length === 2 ? named[section] : undefined
    if (thing !== undefined && (old === undefined || now === undefined)) {
      changes.push(`${thing} ${name} ${old === undefined ? 'added' : 'removed'}`)
    } else if (isRecord(old) && isRecord(now)) {
      for (const key of new Set([...Object.keys(old), ...Object.keys(now)])) compare([...path, key], old[key], now[key])
    } else {
      const key = path.join('.')
      const change = mayShow(path) ? describeValues(old, now) : describeKey(old, now)
      changes.push(key + change + (later(key) ? ' (after a restart)' : ''))
    }
  }

  compare([], before, after)
  return changes.length <= maxChanges
    ? changes
    : [...changes.slice(0, maxChanges), `and ${changes.length - maxChanges} more`]
}

const describeKey = (old: unknown, now: unknown): string =>
  old === undefined ? ' added' : now === undefined ? ' removed' : ' changed'

function describeValues(old: unknown, now: unknown): string {
  if (isStringList(old) && isStringList(now)) {
    const added = now.filter((word) => !old.includes(word)).map((word) => `${shown(word)} added`)
    const removed = old.filter((word) => !now.includes(word)).map((word) => `${shown(word)} removed`)
    return added.length + removed.length === 0 ? ': order changed' : `: ${[...added, ...removed].join(', ')}`
  }
  const isPlain = [old, now].every((value) => typeof value !== 'object')
  return isPlain ? `: ${shown(old)} → ${shown(now)}` : describeKey(old, now)
}

function shown(value: unknown): string {
  if (value === undefined) return 'none'
  return shorten(String(value).replaceAll(/[\u0000-\u001f\u007f-\u009f\u2028\u2029]/g, ' '), maxValue)
}

const isStringList = (value: unknown): value is readonly string[] =>
  Array.isArray(value) && value.every((word) => typeof word === 'string')

export const mayShowValue = (path: readonly string[]): boolean =>
  path.every((_, index) => secretKindAt(path.slice(0, index + 1)) === undefined)
