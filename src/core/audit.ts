import type { ApprovalDecision } from './approval.ts'
import type { Kind } from './entry.ts'
import type { ErrorCode } from './errors.ts'

export type Operation =
  | 'call_tool'
  | 'read_resource'
  | 'get_prompt'
  | 'complete'
  | 'subscribe'
  | 'list'
  /** Looks up an entry without using it. Recorded only if that fails. */
  | 'find'
  | 'authenticate'
  | 'refusals'
  | (string & {})

/** What an audit record is about. The field names are those of the record on disk (F11). */
export interface AuditSubject {
  /** The id of the operation, which both of its records share. */
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
  /** The name that callers see, if the operator has changed it (V15). */
  readonly served?: string | undefined
  /** For meta-tools: the server that the caller named. */
  readonly target?: string | undefined
  readonly write: boolean
  /** Whether to truncate text and arguments, so that a refused caller cannot fill the disk. Not stored. */
  readonly brief?: true | undefined
}

export interface AuditBegin extends AuditSubject {
  /** The arguments as the caller sent them, with the operator's own; the audit writer redacts them. */
  readonly arguments?: Readonly<Record<string, unknown>>
}

export interface AuditEnd extends AuditSubject {
  readonly decision: 'ALLOW' | 'DENY' | 'ERROR' | 'TIMEOUT'
  /** The reason in one word, such as `server_not_allowed` or `rate_limited`; absent on success. */
  readonly reason?: string
  /** The rule that decided, even if it allowed the call. */
  readonly rule?: string
  readonly code?: ErrorCode
  readonly is_error: boolean
  readonly latency_ms: number
  readonly findings?: readonly string[]
  /** For listings: how many entries were requested (names or a limit), how many were returned, and their tokens. */
  readonly requested?: number
  /** How many entries a list was taken from, before the caller's filters. */
  readonly available?: number
  readonly returned?: number
  readonly tokens?: number
  /** For rejected requests: the agent that the caller asked for. */
  readonly asked?: string
  /** For calls that a person approved or denied (V8): what they decided, and who they are. */
  readonly approval?: ApprovalDecision
  readonly approver?: string
  /** For retried calls: the outcome of each attempt, which is an error code or `ok`. */
  readonly attempts?: readonly string[]
  /** What was wrong: the refused Host or Origin, what was asked for, or why a message could not be read. */
  readonly detail?: string
  /** How many of this principal's earlier refusals were not recorded, because there were too many. */
  readonly suppressed?: number
}

export interface Audit {
  /**
   * Records the start of an operation. Throws AUDIT_UNAVAILABLE if the operation must not run unrecorded. Returns a
   * promise only after recent disk failures: await it, and do not run the operation if it rejects.
   */
  begin(event: AuditBegin): Promise<void> | undefined
  /**
   * Records the end of an operation. The promise resolves when the record is as durable as configured; `undefined`
   * means that there is nothing to wait for. Rejects with AUDIT_UNAVAILABLE if the answer must not be sent unrecorded.
   */
  end(event: AuditEnd): Promise<void> | undefined
}

export const noAudit: Audit = { begin: () => undefined, end: () => undefined }
