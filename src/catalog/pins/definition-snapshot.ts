import { createHash } from 'node:crypto'
import type { Definition } from '../../core/entry.ts'
import { canonical } from '../../lib/canonical-json.ts'
import { pageOf } from '../item.ts'
import type { ScanFinding } from '../scan/finding.ts'
import { scanDefinition, scannerVersion } from '../scan/scan.ts'
import type { DefinitionSnapshot } from './pin-record.ts'

/** A definition at the moment it is looked at. */
export interface PinnedDefinition {
  readonly hash: string
  readonly part: Definition
}

export const pinnedDefinitionOf = (definition: Definition): PinnedDefinition => {
  const part = pinnedPart(definition)
  return { hash: hashOf(part), part }
}

/** What the scanner said, in the form that is kept. */
export type ScanVerdict = Pick<DefinitionSnapshot, 'flags' | 'high' | 'scanner'>

export const verdictOf = (findings: readonly ScanFinding[]): ScanVerdict => ({
  flags: [...new Set(findings.map(({ kind }) => kind))],
  high: findings.some(({ severity }) => severity === 'high'),
  scanner: scannerVersion,
})

/** Nobody has looked yet. */
const unscanned: ScanVerdict = { flags: [], high: false, scanner: 0 }

export const snapshotOf = ({ hash, part }: PinnedDefinition, at: number): DefinitionSnapshot => ({
  hash,
  at,
  definition: truncatedCopy(part),
  ...unscanned,
})

export const isScanned = ({ scanner }: ScanVerdict): boolean => scanner === scannerVersion

export const scan = ({ part }: PinnedDefinition): readonly ScanFinding[] => scanDefinition(part)

/** A field longer than this is known by its hash alone; a pin must not grow with a server's wordiness. */
const maxField = 8_192
const maxInAll = 16_384
const maxFields = 64

/** A copy of a definition for people to compare with a later one: bounded, and still different where it was different. */
function truncatedCopy(definition: Definition): Definition {
  const copy: Record<string, unknown> = {}
  let room = maxInAll
  for (const [index, [key, value]] of Object.entries(definition).entries()) {
    const text = definitionText(value)
    const keeps = text.length <= Math.min(maxField, room) && index < maxFields && key.length < 200
    if (keeps) room -= text.length
    if (index >= maxFields) continue
    Object.defineProperty(copy, key.slice(0, 200), {
      value: keeps ? value : stub(text),
      enumerable: true,
      writable: true,
      configurable: true,
    })
  }
  return copy
}

const stub = (text: string): string => {
  const hash = createHash('sha256').update(text).digest('hex').slice(0, 16)
  return `(${text.length} characters, too long to keep; sha256 ${hash})`
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

/** Definitions of any depth; a missing field counts as null. */
export const definitionText = (part: unknown): string => canonical(part ?? null, { depth: Number.POSITIVE_INFINITY })

/** The hash by which a definition is known again, however its members are ordered. */
export const hashOf = (part: Definition): string => createHash('sha256').update(definitionText(part)).digest('hex')
