/** Revisions with sessions that we speak, the newest first. */
export const legacyRevisions = ['2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05'] as const

export type LegacyRevision = (typeof legacyRevisions)[number]

/** What we ask a server of the legacy era for. */
export const latestLegacy: LegacyRevision = legacyRevisions[0]

/** The stateless revision. */
export const modernRevision = '2026-07-28'

/** Whether we speak this revision with a server that was greeted in the way of this era. */
export const isKnownRevision = (version: string, era: 'legacy' | 'modern'): boolean =>
  era === 'modern' ? version === modernRevision : (legacyRevisions as readonly string[]).includes(version)
