import { createHash } from 'node:crypto'
import type { Definition } from '../../core/entry.ts'
import { canonical } from '../../lib/canonical-json.ts'
import { pageOf } from '../item.ts'

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

/** Definitions of any depth; a missing field counts as null. */
export const definitionText = (part: unknown): string => canonical(part ?? null, { depth: Number.POSITIVE_INFINITY })

/** The hash by which a definition is known again, however its members are ordered. */
export const hashOf = (part: Definition): string => createHash('sha256').update(definitionText(part)).digest('hex')
