import type { Json } from '../json/json.ts'

/** How an error code maps to each protocol. This table is the only place that maps codes to numbers. */
interface ErrorKind {
  /** The JSON-RPC code, for failures that are not tool results. Toolway's own codes lie outside -32768…-32000. */
  readonly rpc: number
  readonly http: number
  /** Whether the same call may succeed later without changes. */
  readonly retryable: boolean
  /** Whether the server itself failed, so that the circuit breaker counts the error. */
  readonly serverFault: boolean
  /** Whether a rule or a limit refused the call, so that audit records DENY. */
  readonly denial?: true
  /** Whether even `tools/call` responds with a JSON-RPC error, because the request itself is wrong. */
  readonly malformed?: true
}

const refusedKind = { retryable: false, serverFault: false } as const
const deniedKind = { ...refusedKind, denial: true } as const
const laterKind = { retryable: true, serverFault: false } as const
const brokenKind = { retryable: true, serverFault: true } as const

export const errorKinds = {
  TOOL_NOT_FOUND: { rpc: -32602, http: 404, ...refusedKind, malformed: true },
  SERVER_NOT_FOUND: { rpc: -32602, http: 404, ...refusedKind, malformed: true },
  SERVER_UNAVAILABLE: { rpc: -31001, http: 502, ...brokenKind },
  SERVER_UNHEALTHY: { rpc: -31002, http: 503, ...laterKind },
  SERVER_DISABLED: { rpc: -31023, http: 403, ...refusedKind },
  CIRCUIT_OPEN: { rpc: -31003, http: 503, ...laterKind },
  DENIED_BY_POLICY: { rpc: -31004, http: 403, ...deniedKind },
  NAMESPACE_NOT_ALLOWED: { rpc: -31005, http: 403, ...deniedKind },
  TOOL_BLOCKED: { rpc: -31006, http: 403, ...deniedKind },
  WRITE_NOT_ALLOWED: { rpc: -31007, http: 403, ...deniedKind },
  AUTH_REQUIRED: { rpc: -31008, http: 401, ...deniedKind },
  RATE_LIMITED: { rpc: -31009, http: 429, ...laterKind, denial: true },
  INVALID_ARGUMENTS: { rpc: -31010, http: 400, ...refusedKind },
  INVALID_PATH: { rpc: -31011, http: 400, ...deniedKind },
  UNSAFE_SQL: { rpc: -31012, http: 400, ...deniedKind },
  UNSAFE_URL: { rpc: -31013, http: 400, ...deniedKind },
  INVALID_AGENT_ID: { rpc: -31014, http: 403, ...deniedKind },
  FALLBACK_AGENT_NOT_IN_RULES: { rpc: -31015, http: 403, ...deniedKind },
  NO_FALLBACK_CONFIGURED: { rpc: -31016, http: 403, ...deniedKind },
  TIMEOUT: { rpc: -31017, http: 504, ...brokenKind },
  CANCELLED: { rpc: -31018, http: 499, ...refusedKind },
  OUTCOME_UNKNOWN: { rpc: -31019, http: 502, retryable: false, serverFault: true },
  OVERLOADED: { rpc: -31020, http: 503, ...laterKind },
  QUARANTINED: { rpc: -31021, http: 403, ...deniedKind },
  AUDIT_UNAVAILABLE: { rpc: -31022, http: 503, ...laterKind },
  INTERNAL: { rpc: -32603, http: 500, ...refusedKind },
} as const satisfies Record<string, ErrorKind>

export type ErrorCode = keyof typeof errorKinds

export interface ErrorDetails {
  readonly server?: string | undefined
  readonly rule?: string
  /** Whole milliseconds, at least 1. */
  readonly retryAfterMs?: number | undefined
  /** The audit reason, if the code is not specific enough. */
  readonly auditReason?: string
  /** For `WWW-Authenticate`: what an HTTP client should request from its identity provider. */
  readonly challenge?: string
  /** Set if no part of the request reached the server, so that resending it is safe for any tool (F12). */
  readonly unsent?: true | undefined
  /**
   * Set if the server did not recognize the request's session. It may have executed the request nevertheless. `fresh`:
   * the server had not answered anything in that session before, so a new session would not help.
   */
  readonly sessionEnded?: 'established' | 'fresh'
  /** Set if the request may be sent once more in a new session; only with `sessionEnded: 'established'`. */
  readonly resendable?: true | undefined
  /**
   * Set if only this request failed although the server answered it: the server refused it as it is, or its answer is
   * unusable or exceeds one of Toolway's limits. The failure says nothing about the server's health. The request is not
   * repeated: it would probably fail again, and the answer of a model may have a price.
   */
  readonly requestOnly?: true | undefined
  /** Set if this process was paused when the call timed out, so that the timeout says nothing about the server. */
  readonly late?: true | undefined
  /** The real refusal, if the caller sees "not found" instead (`policy.hideDenied`). */
  readonly concealed?: ToolwayError
  readonly cause?: unknown
}

/** Rounds `retryAfterMs` up to whole milliseconds: waits computed from clocks and jitter have fractions. */
function wholeRetryAfter(details: ErrorDetails): ErrorDetails {
  const { retryAfterMs } = details
  if (retryAfterMs === undefined || (Number.isInteger(retryAfterMs) && retryAfterMs >= 1)) return details
  return { ...details, retryAfterMs: Number.isFinite(retryAfterMs) ? Math.max(1, Math.ceil(retryAfterMs)) : undefined }
}

/** An error that Toolway itself reports. The message says what happened and what to do about it. */
export class ToolwayError extends Error {
  override readonly name = 'ToolwayError'
  readonly code: ErrorCode
  readonly details: ErrorDetails

  constructor(code: ErrorCode, message: string, details: ErrorDetails = {}) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause })
    this.code = code
    this.details = wholeRetryAfter(details)
  }

  get kind(): ErrorKind {
    // A plugin without type checks, or another version of Toolway, may use another code.
    return errorKinds[this.code] ?? errorKinds.INTERNAL
  }

  /** The error for audit and metrics: the real reason, even if it is hidden from the caller. */
  get truth(): ToolwayError {
    return this.details.concealed ?? this
  }

  /** Whether a rule or a limit refused this call or one that it made, even if the caller sees "not found" instead. */
  get isDenial(): boolean {
    return this.truth.kind.denial === true
  }

  /** A copy that looks the same to the caller and carries the real reason for the audit record. */
  concealing(truth: ToolwayError | undefined): ToolwayError {
    if (truth === undefined) return this
    return new ToolwayError(this.code, this.message, { ...this.details, concealed: truth })
  }

  /** The error as data, which callers find in `_meta["dev.toolway/error"]` or in the `data` of a JSON-RPC error. */
  get data(): { code: ErrorCode; rule?: string; server?: string; retryAfterMs?: number } {
    const { rule, server, retryAfterMs } = this.details
    return { code: this.code, rule, server, retryAfterMs }
  }

  /** Removes `unsent` from an error, for a failure after an earlier part of the call was sent. */
  static sent(thrown: unknown): unknown {
    if (!(thrown instanceof ToolwayError) || !thrown.details.unsent) return thrown
    return new ToolwayError(thrown.code, thrown.message, { ...thrown.details, unsent: undefined })
  }

  /** Converts anything thrown to a ToolwayError. Unexpected errors become INTERNAL; only the log shows their cause. */
  static from(thrown: unknown): ToolwayError {
    if (thrown instanceof ToolwayError) return thrown
    return new ToolwayError('INTERNAL', "Internal error: see Toolway's log for the cause.", { cause: thrown })
  }
}

export const invalidArguments = (message: string): ToolwayError => new ToolwayError('INVALID_ARGUMENTS', message)

/** Thrown for a request that MCP does not define, or for which the client did not declare support. */
export class UnsupportedRequest extends ToolwayError {
  constructor(message: string) {
    super('INVALID_ARGUMENTS', message)
  }
}

/** An error object that a server returned. It reaches the caller unchanged (T2). */
export class ServerError extends Error {
  override readonly name = 'ServerError'
  readonly error: Json<RpcErrorObject>

  constructor(error: Json<RpcErrorObject>) {
    super('the server returned an error')
    this.error = error
  }
}

export interface RpcErrorObject {
  readonly code: number
  readonly message: string
  readonly data?: unknown
}

/** Thrown if the listen address is unavailable; the message says what to do. */
export class CannotListen extends Error {
  override readonly name = 'CannotListen'
}
