import type { Clock } from '../../core/clock.ts'
import type { ServerFinding } from '../../core/source-status.ts'

export type CheckStatus = 'ok' | 'warning' | 'problem'

export interface CheckFinding {
  readonly status: CheckStatus
  /** A sentence without a full stop. */
  readonly message: string
  /** What to do: a command or a line of configuration to copy, if possible. */
  readonly remedy?: string | undefined
  /** Further lines, such as stderr. */
  readonly details?: readonly string[] | undefined
  /** What a server sent and a gateway would shorten, leave out or refuse. */
  readonly findings?: readonly ServerFinding[] | undefined
}

export interface CheckContext {
  /** The command as the user calls it, `toolway` or an npm script. */
  readonly command: string
  readonly clock: Clock
}

export interface DoctorCheck {
  /** Name for scripts, such as `port` or `server.memory`. */
  readonly name: string
  /** Rejects only if the check could not be carried out. */
  run(signal: AbortSignal): Promise<CheckFinding | readonly CheckFinding[]>
}

/** A finding, with its check's name and duration. */
export interface CheckResult extends CheckFinding {
  readonly name: string
  readonly ms: number
}

const finding =
  (status: CheckStatus) =>
  (message: string, remedy?: string, details?: readonly string[]): CheckFinding => ({
    status,
    message,
    remedy,
    details,
  })

export const ok = finding('ok')
export const warning = finding('warning')
/** A problem always has a remedy. */
export const problem: (message: string, remedy: string, details?: readonly string[]) => CheckFinding =
  finding('problem')

/** The findings, or `otherwise` if there are none. */
export function findingsOr(found: readonly (CheckFinding | undefined)[], otherwise: CheckFinding) {
  const findings = found.filter((finding) => finding !== undefined)
  return findings.length > 0 ? findings : otherwise
}
