import { sep } from 'node:path'
import { createInterface } from 'node:readline/promises'
import type { Readable, Writable } from 'node:stream'
import { styleText } from 'node:util'
import { FileProblem } from '../clients/file.ts'
import { ConfigError } from '../config/problems.ts'
import { type ErrorCode, ToolwayError } from '../core/errors.ts'
import { homeOf } from '../core/home.ts'
import { cut, oneLine } from './table.ts'

/** A stream to print on, which may be a terminal. */
export type Stream = Writable & { readonly isTTY?: boolean; readonly columns?: number }

/** What surrounds a command: handed in, so that tests can run one without a process. */
export interface Shell {
  readonly stdin: Readable
  readonly stdout: Stream
  readonly stderr: Stream
  readonly env: Readonly<Record<string, string | undefined>>
  readonly cwd: string
  /** Aborted by the first SIGINT or SIGTERM. */
  readonly interrupted: AbortSignal
}

/** How the user can call us again: npm scripts of the checkout have no `toolway` in their path. */
export const commandName = (env: Shell['env']): string =>
  env.npm_lifecycle_event === 'start' || env.npm_lifecycle_event === 'toolway' ? 'npm run -s toolway --' : 'toolway'

/** A text about files, with those below the current folder named from there. */
export const relativeTo = (text: string, cwd: string): string =>
  text.replaceAll(cwd.endsWith(sep) ? cwd : cwd + sep, '')

/** The command line was understood, but cannot be followed as it is. */
export class UsageError extends Error {
  override readonly name = 'UsageError'
  readonly hint: string | undefined

  constructor(message: string, hint?: string) {
    super(message)
    this.hint = hint
  }
}

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

type Format = Parameters<typeof styleText>[0]

/** Colours a text if the stream is a terminal and `NO_COLOR` does not forbid it. */
export type Paint = (format: Format, text: string) => string

/** Where a command prints: answers on stdout, everything else on stderr. */
export interface Output {
  /** Whether programs read the answer. */
  readonly json: boolean
  /** How many cells a line may take; nothing is cut where no terminal shows it. */
  readonly width: number
  /** Whether a person is looking at stdout. */
  readonly terminal: boolean
  /** A line of the answer. */
  print(line: string): void
  /** The answer as JSON: on one line for programs, indented for people. */
  value(value: unknown): void
  /** A line beside the answer. */
  note(line: string): void
  readonly paint: Paint
  readonly paintNote: Paint
}

const painter =
  (stream: Stream): Paint =>
  (format, text) =>
    styleText(format, text, { stream })

export function createOutput({ stdout, stderr }: Pick<Shell, 'stdout' | 'stderr'>, json = false): Output {
  const terminal = stdout.isTTY === true
  return {
    json,
    terminal,
    width: terminal ? (stdout.columns ?? 80) : Number.POSITIVE_INFINITY,
    print: (line) => stdout.write(line + '\n'),
    value: (value) => stdout.write(JSON.stringify(value, undefined, terminal ? 2 : undefined) + '\n'),
    note: (line) => stderr.write(line + '\n'),
    paint: painter(stdout),
    paintNote: painter(stderr),
  }
}

/** Whether a person sits at both ends. */
export const isInteractive = ({ stdin, stderr }: Shell): boolean =>
  (stdin as { isTTY?: boolean }).isTTY === true && stderr.isTTY === true

/** Asks a person for a yes; everything else is a no, and so is leaving. */
export async function confirm(shell: Shell, question: string): Promise<boolean> {
  const lines = createInterface({ input: shell.stdin, output: shell.stderr })
  try {
    const answer = await lines.question(`${question} [y/N] `, { signal: shell.interrupted })
    return /^\s*y(es)?\s*$/i.test(answer)
  } catch {
    return false
  } finally {
    lines.close()
  }
}

/** One line on stderr that says what is being waited for; it vanishes when disposed of. */
export interface ProgressLine extends Disposable {
  show(text: string): void
}

/** Progress for people only: without a terminal it shows nothing. */
export function createProgress({ stderr }: Pick<Shell, 'stderr'>): ProgressLine {
  if (stderr.isTTY !== true) return { show() {}, [Symbol.dispose]() {} }
  let shown = ''
  return {
    show(text) {
      const line = cut(oneLine(text), (stderr.columns ?? 80) - 1)
      if (line !== shown) stderr.write('\r\x1b[2K' + line)
      shown = line
    },
    [Symbol.dispose]: () => stderr.write('\r\x1b[2K'),
  }
}

/** A path as people write it: from the current folder, or from home. */
export function shortPath(path: string, { cwd, env }: Pick<Shell, 'cwd' | 'env'>): string {
  const home = homeOf(env)
  if (cwd !== home && path.startsWith(cwd + sep)) return path.slice(cwd.length + 1)
  return tildePath(path, home)
}

/** `~/…` where a path lies at home. */
export const tildePath = (path: string, home: string): string =>
  path.startsWith(home + sep) ? `~/${path.slice(home.length + 1).replaceAll(sep, '/')}` : path

/** What is wrong with a file is for the user to mend. */
export async function withFileProblems<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (thrown) {
    throw thrown instanceof FileProblem ? new UsageError(thrown.message, thrown.hint) : thrown
  }
}

/** Edits a text; what stands in the way is said of its file. */
export function editText<T>(file: string, edit: () => T): T {
  try {
    return edit()
  } catch (thrown) {
    if (!(thrown instanceof FileProblem)) throw thrown
    throw new UsageError(`${file} was left alone: ${thrown.message.replace(/\.$/, '')}.`, thrown.hint)
  }
}
