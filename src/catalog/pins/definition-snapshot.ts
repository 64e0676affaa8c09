import { createHash } from 'node:crypto'
import { pageOf } from '../../core/apps.ts'
import type { Definition } from '../../core/entry.ts'
import { canonical } from '../../json/canonical-json.ts'
import { asRecord, isRecord } from '../../lib/is-record.ts'
import { define } from '../item.ts'
import type { ScanFinding } from '../scan/finding.ts'
import { isFlag, scannerVersion } from '../scan/scan.ts'
import type { DefinitionSnapshot } from './pin-record.ts'

export interface PinnedDefinition {
  readonly hash: string
  readonly part: Definition
}

export const pinnedDefinitionOf = (definition: Definition): PinnedDefinition => {
  const part = pinnedPart(definition)
  return { hash: hashOf(part), part }
}

export type ScanVerdict = Pick<DefinitionSnapshot, 'flags' | 'high' | 'scanner'>

export const verdictOf = (findings: readonly ScanFinding[]): ScanVerdict => ({
  flags: [...new Set(findings.filter(isFlag).map(({ kind }) => kind))],
  high: findings.some(({ severity }) => severity === 'high'),
  scanner: scannerVersion,
})

const unscanned: ScanVerdict = { flags: [], high: false, scanner: 0 }

export const snapshotOf = ({ hash, part }: PinnedDefinition, at: number): DefinitionSnapshot => ({
  hash,
  at,
  definition: truncatedCopy(part),
  ...unscanned,
})

export const isScanned = ({ scanner }: ScanVerdict): boolean => scanner === scannerVersion

/** Max characters per field in a pin. Longer fields are stored as a hash, so that servers cannot inflate pins. */
const maxField = 8_192
const maxInAll = 16_384
const maxFields = 64

/** A copy of limited size for people to compare. Long fields are replaced by a hash, so that changes are detected. */
function truncatedCopy(definition: Definition): Definition {
  const copy: Record<string, unknown> = {}
  let room = maxInAll
  for (const [index, [key, value]] of Object.entries(definition).entries()) {
    const text = definitionText(value)
    const keeps = text.length <= Math.min(maxField, room) && index < maxFields && key.length < 200
    if (keeps) room -= text.length
    if (index >= maxFields) continue
    define(copy, key.slice(0, 200), keeps ? value : stub(text))
  }
  return copy
}

const stub = (text: string): string => {
  const hash = createHash('sha256').update(text).digest('hex').slice(0, 16)
  return `(${text.length} characters, too long to keep; sha256 ${hash})`
}

/**
 * The part of a definition that is pinned: everything except `_meta`, which models do not read. Servers put volatile
 * values there (times, counters, whether another gateway behind this one is stale), which would cause constant false
 * alarms. The only part of `_meta` that is pinned is `ui`: hosts open its page, and it says who may call the tool.
 */
export function pinnedPart(definition: Definition): Definition {
  if (definition._meta === undefined) return definition
  const { _meta, ...rest } = definition
  const page = pageOf(definition)
  if (page === undefined && !isRecord(_meta.ui)) return rest
  return { ...rest, _meta: { ui: { ...asRecord(_meta.ui), ...(page !== undefined && { resourceUri: page }) } } }
}

/** The canonical JSON of a definition or a part of it, at any depth. A missing field counts as null. */
export const definitionText = (part: unknown): string => canonical(part ?? null, { depth: Number.POSITIVE_INFINITY })

/** The hash of a definition. It does not depend on the order of members. */
export const hashOf = (part: Definition): string => createHash('sha256').update(definitionText(part)).digest('hex')
