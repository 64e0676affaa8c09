/** Fields of an audit record that are compared as a whole, or with `*`. */
export const comparedFields = [
  'agent',
  'principal',
  'server',
  'decision',
  'reason',
  'operation',
  'code',
  'call',
  'parent',
] as const

export type ComparedField = (typeof comparedFields)[number]

/** Which operations somebody wants to see; every condition must hold. */
export interface AuditFilter extends Partial<Readonly<Record<ComparedField, string>>> {
  /** Milliseconds since the epoch, inclusive. */
  readonly since?: number
  /** Exclusive. */
  readonly until?: number
  /** A tool's own name, or `server.tool`. */
  readonly tool?: string
  /** Anywhere in the arguments, whatever the case; also as `name=value`. */
  readonly text?: string
  /** The tool said that it failed, or did not. */
  readonly is_error?: boolean
}
