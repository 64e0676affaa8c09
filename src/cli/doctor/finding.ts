import { readFile, stat } from 'node:fs/promises'
import type { ServerConfig } from '../../config/schema.ts'
import type { Clock } from '../../core/clock.ts'
import type { ServerFinding } from '../../core/source-status.ts'
import { shellQuote } from '../../lib/message-text.ts'
import type { ProbeResult } from '../../runtime/probe-server.ts'

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
  /** A path as shown to the user. */
  short(path: string): string
}

/** What a check found; nothing if it does not apply here. */
export type Findings = CheckFinding | readonly CheckFinding[]

/** A check. Rejects only if it could not be carried out. */
export type DoctorCheck = (signal: AbortSignal) => Findings | Promise<Findings>

/** Checks by their names for scripts, such as `port` or `server.memory`. */
export type DoctorChecks = Readonly<Record<string, DoctorCheck>>

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

export function findingsOr(found: readonly (CheckFinding | undefined)[], otherwise: CheckFinding) {
  const findings = found.filter((finding) => finding !== undefined)
  return findings.length > 0 ? findings : otherwise
}

export interface ProbedServer {
  readonly name: string
  readonly config: ServerConfig
  readonly result: ProbeResult
  readonly withinMs: number
  /** How the user calls Toolway. */
  readonly command: string
  /** The user's environment; servers get only a part of it. */
  readonly env: Readonly<Record<string, string | undefined>>
}

/** The content of a private file, such as `the token`, and any problem with it; both are absent if there is no file. */
export async function privateFile(
  path: string,
  what: string,
  { short }: Pick<CheckContext, 'short'>,
): Promise<{ finding?: CheckFinding; text?: string }> {
  const shown = short(path)
  try {
    const { mode, uid } = await stat(path)
    const text = (await readFile(path, 'utf8')).trim()
    if (process.platform !== 'win32' && (mode & 0o077) !== 0) {
      const message = `${what} is readable by others (${shown}, mode ${octal(mode)})`
      return { text, finding: problem(message, `chmod 600 ${shellQuote(path)}`) }
    }
    if (!isForeign(uid)) return { text }
    return { text, finding: problem(`${what} belongs to another user (${shown})`, chownCommand(path)) }
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOENT' || code === 'ENOTDIR') return {}
    return { finding: problem(`${what} cannot be read (${shown}, ${code})`, chownCommand(path)) }
  }
}

export const octal = (mode: number): string => (mode & 0o777).toString(8)

/** Whether a file belongs to another user. Root may use any file. */
export function isForeign(uid: number): boolean {
  const own = process.getuid?.() ?? uid
  return own !== 0 && own !== uid
}

/**
 * The command that gives a file or folder back to the user. Running Toolway even once with sudo leaves files owned by
 * root. Use `-R` only for a folder that contains nothing but Toolway's files.
 */
export const chownCommand = (path: string, recursive?: '-R'): string =>
  `sudo chown ${recursive ? '-R ' : ''}"$(id -u)" ${shellQuote(path)}`
