import { isDeepStrictEqual } from 'node:util'
import type { Config } from '../config/schema.ts'
import { differenceOf } from './difference.ts'

/** Whether the values under this key may be told; where not, only that they have changed. */
export type MayTell = (path: readonly string[]) => boolean

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
export function changesInWords(before: Config, after: Config, mayTell: MayTell): string[] {
  const { atNextStart } = differenceOf(before, after)
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
