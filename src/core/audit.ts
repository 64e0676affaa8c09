import type { Kind } from './entry.ts'
import type { ErrorCode } from './errors.ts'

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

/** Field names are those of the record on disk (F11). */
export interface AuditSubject {
  /** Shared by both records of an operation. */
  readonly call: string
  readonly parent?: string | undefined
  readonly agent: string
  readonly principal: string
  /** Set only if the caller sent no credential. */
  readonly anonymous?: true | undefined
  readonly address?: string | undefined
  readonly operation: Operation
  readonly kind?: Kind
  readonly server?: string
  /** The entry's own name (tool, prompt, URI, URI template), or the name that was not found. */
  readonly tool?: string
  readonly write: boolean
  /** Truncates texts and arguments, because a refused caller must not fill the disk. Not stored. */
  readonly brief?: true | undefined
}

export interface AuditBegin extends AuditSubject {
  /** As the caller sent them; the audit writer redacts them. */
  readonly arguments?: Readonly<Record<string, unknown>>
}

export interface AuditEnd extends AuditSubject {
  readonly decision: 'ALLOW' | 'DENY' | 'ERROR' | 'TIMEOUT'
  /** One word such as `server_not_allowed` or `rate_limited`; absent on success. */
  readonly reason?: string
  /** The deciding rule, also if it allowed. */
  readonly rule?: string
  readonly code?: ErrorCode
  readonly is_error: boolean
  readonly latency_ms: number
  readonly findings?: readonly string[]
  /** For listings: how many were requested by name, how many were shown, and their token cost. */
  readonly requested?: number
  readonly returned?: number
  readonly tokens?: number
  /** For rejected requests: the agent that was asked for. */
  readonly asked?: string
  /** For retried calls: the outcome of each attempt, a code or `ok`. */
  readonly attempts?: readonly string[]
  /** What was wrong: the refused Host or Origin, why a message could not be read. */
  readonly detail?: string
  /** How many earlier refusals of this principal have no record, because there were too many. */
  readonly suppressed?: number
}

export interface Audit {
  /**
   * Records the start of an operation; throws AUDIT_UNAVAILABLE if it must not run unrecorded. Returns a promise only
   * after recent disk failures: wait for it, and do not run the operation if it rejects.
   */
  begin(event: AuditBegin): Promise<void> | undefined
  /**
   * Records the end of an operation. The promise resolves when the record is as durable as configured; `undefined`
   * means that there is nothing to wait for. Rejects with AUDIT_UNAVAILABLE if the answer must not be sent unrecorded.
   */
  end(event: AuditEnd): Promise<void> | undefined
}

export const noAudit: Audit = { begin: () => undefined, end: () => undefined }
