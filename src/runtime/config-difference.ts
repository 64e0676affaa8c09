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

/** A setting, or an entry such as a server, that differs. */
interface ChangedSetting {
  readonly path: readonly string[]
  readonly kind: 'added' | 'removed' | 'changed'
  readonly old: unknown
  readonly now: unknown
}

/** Sections that need a restart, because their ports, files and stores are already open. */
const restartSections: readonly (keyof Config)[] = ['server', 'stores', 'audit', 'history', 'telemetry']
/** Keys in the `fixed` sections that nevertheless apply without a restart. */
const live: ReadonlySet<string> = new Set(['audit.arguments', 'audit.redact', 'telemetry.traces'])
/** Keys that are not settings, with the setting that they follow from. */
const derivedKeys: Readonly<Record<string, string>> = { 'stores.common': 'stores.path' }
/** Sections whose keys are user-defined names, with a noun for one entry. */
const sectionNouns: Readonly<Record<string, string>> = {
  mcpServers: 'server',
  agents: 'agent',
  models: 'model',
  sinks: 'sink',
}

/** Whether values at this path may be shown. If they may not, a change is reported without its values. */
type MayShow = (path: readonly string[]) => boolean

export function compareConfigs(before: Config, after: Config, mayShow: MayShow = mayShowValue) {
  const all = changedSettings(before, after)
  const later = all.filter(({ path }) => needsRestart(path))
  const servers = all.filter(({ path }) => path[0] === 'mcpServers')
  const serversThat = (kind: ChangedSetting['kind']) =>
    unique(servers.filter((one) => (one.path.length === 2 ? one.kind : 'changed') === kind).map(({ path }) => path[1]))
  const sections = unique(all.filter(({ path }) => !needsRestart(path)).map(({ path }) => path[0]))
  const difference: ConfigDifference = {
    servers: { added: serversThat('added'), removed: serversThat('removed'), changed: serversThat('changed') },
    sections: sections.filter((section) => section !== 'mcpServers'),
    atNextStart: restartSections.flatMap((section) =>
      unique(
        later
          .filter(({ path }) => path[0] === section)
          .map(({ path }) => derivedKeys[settingKey(path)] ?? settingKey(path)),
      ),
    ),
  }
  return {
    difference,
    /** The changes in words, such as `server memory added` or `limits.perMinute: 60 → 120`. */
    changes: describeChanges(all, mayShow),
    /** The new configuration, but with the old values of settings that need a restart. */
    applicable: withFixedSettings(before, after),
  }
}

function changedSettings(old: unknown, now: unknown, path: readonly string[] = []): ChangedSetting[] {
  if (isDeepStrictEqual(old, now)) return []
  const kind = old === undefined ? 'added' : now === undefined ? 'removed' : 'changed'
  if (!isRecord(old) || !isRecord(now)) return [{ path, kind, old, now }]
  return unique([...Object.keys(old), ...Object.keys(now)]).flatMap((key) =>
    changedSettings(old[key], now[key], [...path, key]),
  )
}

const unique = (words: readonly (string | undefined)[]): string[] => [...new Set(words.map(String))]

const settingKey = (path: readonly string[]): string => path.slice(0, 2).join('.')

const needsRestart = (path: readonly string[]): boolean =>
  restartSections.some((section) => section === path[0]) && !live.has(settingKey(path))

function withFixedSettings(before: Config, after: Config): Config {
  const partOf = (config: Config, section: keyof Config, isLive: boolean) =>
    Object.entries(config[section] as object).filter(([key]) => live.has(`${section}.${key}`) === isLive)
  const sections = restartSections.map((section) => [
    section,
    Object.fromEntries([...partOf(before, section, false), ...partOf(after, section, true)]),
  ])
  return { ...after, ...Object.fromEntries(sections) }
}

/** Maximum number of changes to describe, in case the whole configuration is replaced. */
const maxDescribedChanges = 100
const maxValueText = 100

function describeChanges(changed: readonly ChangedSetting[], mayShow: MayShow): string[] {
  const settings = changed.filter(({ path }) => derivedKeys[path.join('.')] === undefined)
  const sentences = settings.slice(0, maxDescribedChanges).map((one) => {
    const { path, kind } = one
    const noun = path.length === 2 && kind !== 'changed' ? sectionNouns[String(path[0])] : undefined
    if (noun !== undefined) return `${noun} ${path[1]} ${kind}`
    const change = mayShow(path) ? describeValues(one) : ` ${kind}`
    return path.join('.') + change + (needsRestart(path) ? ' (after a restart)' : '')
  })
  return settings.length <= maxDescribedChanges
    ? sentences
    : [...sentences, `and ${settings.length - maxDescribedChanges} more`]
}

function describeValues({ kind, old, now }: ChangedSetting): string {
  if (isStringList(old) && isStringList(now)) {
    const added = now.filter((word) => !old.includes(word)).map((word) => `${settingText(word)} added`)
    const removed = old.filter((word) => !now.includes(word)).map((word) => `${settingText(word)} removed`)
    return added.length + removed.length === 0 ? ': order changed' : `: ${[...added, ...removed].join(', ')}`
  }
  const isPlain = [old, now].every((value) => typeof value !== 'object')
  return isPlain ? `: ${settingText(old)} → ${settingText(now)}` : ` ${kind}`
}

function settingText(value: unknown): string {
  if (value === undefined) return 'none'
  return shorten(String(value).replaceAll(/[\u0000-\u001f\u007f-\u009f\u2028\u2029]/g, ' '), maxValueText)
}

const isStringList = (value: unknown): value is readonly string[] =>
  Array.isArray(value) && value.every((word) => typeof word === 'string')

const mayShowValue: MayShow = (path) => path.every((_, index) => secretKindAt(path.slice(0, index + 1)) === undefined)
