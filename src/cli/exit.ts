import { ConfigError } from '../config/problems.ts'
import { type ErrorCode, ToolwayError } from '../core/errors.ts'
import { UsageError } from './usage.ts'

/** What the process tells the shell. The only place where failures meet exit codes. */
export const exit = { ok: 0, failed: 1, usage: 2, unavailable: 3, refused: 4, unwell: 5, interrupted: 130 } as const

export type ExitCode = (typeof exit)[keyof typeof exit]

// A script may repeat what ended with 3, because nothing was done; so what may have been done ends with 1.
const exitCodes: Record<ErrorCode, ExitCode> = {
  TOOL_NOT_FOUND: exit.usage,
  SERVER_NOT_FOUND: exit.usage,
  SERVER_UNAVAILABLE: exit.unavailable,
  SERVER_UNHEALTHY: exit.unavailable,
  CIRCUIT_OPEN: exit.unavailable,
  DENIED_BY_POLICY: exit.refused,
  NAMESPACE_NOT_ALLOWED: exit.refused,
  TOOL_BLOCKED: exit.refused,
  WRITE_NOT_ALLOWED: exit.refused,
  AUTH_REQUIRED: exit.refused,
  RATE_LIMITED: exit.refused,
  INVALID_ARGUMENTS: exit.usage,
  INVALID_PATH: exit.refused,
  UNSAFE_SQL: exit.refused,
  UNSAFE_URL: exit.refused,
  INVALID_AGENT_ID: exit.refused,
  FALLBACK_AGENT_NOT_IN_RULES: exit.refused,
  NO_FALLBACK_CONFIGURED: exit.refused,
  TIMEOUT: exit.failed,
  CANCELLED: exit.interrupted,
  OUTCOME_UNKNOWN: exit.failed,
  OVERLOADED: exit.unavailable,
  QUARANTINED: exit.refused,
  AUDIT_UNAVAILABLE: exit.failed,
  INTERNAL: exit.failed,
}

/** The exit code for anything thrown. */
export function exitCodeOf(thrown: unknown): ExitCode {
  if (thrown instanceof ToolwayError) return exitCodes[thrown.code]
  return thrown instanceof UsageError || thrown instanceof ConfigError ? exit.usage : exit.failed
}

/** As `--help` prints them. */
export const exitCodeHelp = `Exit codes:
  0    all went well
  1    the tool or the command failed (also: it may or may not have happened)
  2    bad usage, arguments or configuration
  3    a server is unavailable, nothing was done
  4    refused by policy
  5    doctor found problems
  130  interrupted`
