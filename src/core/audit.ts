import type { Kind } from './entry.ts'
import type { ErrorCode } from './errors.ts'

/** What audit calls the thing that somebody wanted to do. */
export type Operation =
  | 'call_tool'
  | 'read_resource'
  | 'get_prompt'
  | 'complete'
  | 'subscribe'
  | 'list'
  | 'find'
  | 'authenticate'
  | 'refusals'
  | (string & {})

/** Who wanted to do what. Field names are those of the record on disk (F11). */
export interface AuditSubject {
  /** Both records of an operation have it. */
  readonly call: string
  readonly parent?: string | undefined
  readonly agent: string
  readonly principal: string
  /** Only where the caller showed no credential. */
  readonly anonymous?: true | undefined
  readonly address?: string | undefined
  readonly operation: Operation
  readonly kind?: Kind
  readonly server?: string
  /** The entry's own name: of a tool or prompt, a URI, a URI template; or what was asked for in vain. */
  readonly tool?: string
  /** It may change something somewhere. */
  readonly write: boolean
  /** Whoever is refused gets little room: only the beginnings of texts and arguments are kept. Not written down. */
  readonly brief?: true | undefined
}

/** An operation begins. */
export interface AuditBegin extends AuditSubject {
  /** As the caller sent them: whoever writes them down redacts them. */
  readonly arguments?: Readonly<Record<string, unknown>>
}

/** An operation is over. */
export interface AuditEnd extends AuditSubject {
  readonly decision: 'ALLOW' | 'DENY' | 'ERROR' | 'TIMEOUT'
  /** One word: `server_not_allowed`, `rate_limited`, …; none where all went well. */
  readonly reason?: string
  /** The rule that decided, also where it allowed. */
  readonly rule?: string
  readonly code?: ErrorCode
  /** The result of the tool says that it failed. */
  readonly is_error: boolean
  readonly latency_ms: number
  /** What a scan found in the result, by kind. */
  readonly findings?: readonly string[]
  /** For listings: how many were asked for by name, how many were shown, and what they cost a model. */
  readonly requested?: number
  readonly returned?: number
  readonly tokens?: number
  /** For whoever is turned away: the agent that they wanted to be. */
  readonly asked?: string
  /** Where the call was sent more than once: how each attempt ended, a code or `ok`. */
  readonly attempts?: readonly string[]
  /** What was wrong: the Host or Origin that was refused, why a message could not be read. */
  readonly detail?: string
  /** How many refusals of this principal before it have no record of their own, because there were too many. */
  readonly suppressed?: number
}

/** The record of every operation. */
export interface Audit {
  /**
   * Writes down that an operation begins; throws AUDIT_UNAVAILABLE where it must not go on unrecorded. A promise means
   * that the disk has failed lately: the operation must wait for it, and must not run where it rejects.
   */
  begin(event: AuditBegin): Promise<void> | undefined
  /**
   * Writes down how it ended. A promise settles when the record is on disk, as the configuration wants it for this
   * one; `undefined` means that there is nothing to wait for. Rejects with AUDIT_UNAVAILABLE where the answer must
   * not leave unrecorded.
   */
  end(event: AuditEnd): Promise<void> | undefined
}

/** Keeps nothing. */
export const noAudit: Audit = { begin: () => undefined, end: () => undefined }
