import { createHash } from 'node:crypto'
import type { Definition } from '../../core/entry.ts'
import { pageOf } from '../item.ts'

/** JSON with the members of every object in order of their names: equal values have equal texts. */
export function canonical(value: unknown): string {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? 'null'
  if (Array.isArray(value)) return `[${value.map(canonical).join()}]`
  const members: string[] = []
  const object = value as Readonly<Record<string, unknown>>
  for (const key of Object.keys(object).sort()) {
    if (object[key] !== undefined) members.push(`${JSON.stringify(key)}:${canonical(object[key])}`)
  }
  return `{${members.join()}}`
}

/**
 * What of a definition is pinned: all of it but `_meta`. That is for programs, no model reads it, and servers put there
 * what changes by itself (times, counters, whether a gateway behind us is stale), which would be one false alarm after
 * the other. Of `_meta` only the app page stays, because a host opens it.
 */
export function pinnedPart(definition: Definition): Definition {
  if (definition._meta === undefined) return definition
  const { _meta, ...rest } = definition
  const page = pageOf(definition)
  return page === undefined ? rest : { ...rest, _meta: { ui: { resourceUri: page } } }
}

/** The hash by which a definition is known again, however its members are ordered. */
export const hashOf = (part: Definition): string => createHash('sha256').update(canonical(part)).digest('hex')
