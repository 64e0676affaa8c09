import type { Definition } from '../../core/entry.ts'
import type { Finding } from '../scan/finding.ts'
import { scanDefinition, scannerVersion } from '../scan/scan.ts'
import { hashOf, pinnedPart } from './canonical.ts'
import { keptCopy } from './keep.ts'
import type { Sight } from './record.ts'

/** A definition at the moment it is looked at. */
export interface Look {
  readonly hash: string
  readonly part: Definition
}

export const lookAt = (definition: Definition): Look => {
  const part = pinnedPart(definition)
  return { hash: hashOf(part), part }
}

/** What the scanner said, in the form that is kept. */
export type Verdict = Pick<Sight, 'flags' | 'high' | 'scanner'>

export const verdictOf = (findings: readonly Finding[]): Verdict => ({
  flags: [...new Set(findings.map(({ kind }) => kind))],
  high: findings.some(({ severity }) => severity === 'high'),
  scanner: scannerVersion,
})

/** Nobody has looked yet. */
const unscanned: Verdict = { flags: [], high: false, scanner: 0 }

export const sightOf = ({ hash, part }: Look, at: number): Sight => ({
  hash,
  at,
  definition: keptCopy(part),
  ...unscanned,
})

export const isScanned = ({ scanner }: Verdict): boolean => scanner === scannerVersion

export const scan = ({ part }: Look): readonly Finding[] => scanDefinition(part)
