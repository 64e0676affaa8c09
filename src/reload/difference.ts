import { isDeepStrictEqual } from 'node:util'
import type { Config } from '../config/schema.ts'

/** What two configurations do not have in common. */
export interface Difference {
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

export function differenceOf(before: Config, after: Config): Difference {
  const old = new Map(Object.entries(before.mcpServers))
  const now = new Map(Object.entries(after.mcpServers))
  const next = untilNextStart(before, after)
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
export function untilNextStart(before: Config, after: Config): Config {
  const kept = fixed.map((section) => {
    const changing = Object.entries(after[section]).filter(([key]) => live.has(`${section}.${key}`))
    const lasting = Object.entries(before[section]).filter(([key]) => !live.has(`${section}.${key}`))
    return [section, Object.fromEntries([...lasting, ...changing])]
  })
  return { ...after, ...Object.fromEntries(kept) }
}

export const isEmpty = ({ servers, sections }: Difference): boolean =>
  servers.added.length + servers.removed.length + servers.changed.length + sections.length === 0
