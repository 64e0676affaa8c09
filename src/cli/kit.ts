import { readFile } from 'node:fs/promises'
import { resolve, sep } from 'node:path'
import { createInterface } from 'node:readline/promises'
import type { Readable, Writable } from 'node:stream'
import { styleText } from 'node:util'
import { FileProblem } from '../config/edit/file.ts'
import { ConfigError } from '../config/problems.ts'
import { type ErrorCode, ToolwayError } from '../core/errors.ts'
import { homeOf, tildePath } from '../core/home.ts'
import type { Invocation } from './invocation.ts'
import { type Column, cut, oneLine, table } from './table.ts'

export type Stream = Writable & { readonly isTTY?: boolean; readonly columns?: number }

/** The environment in which a command runs; a parameter, so that tests can run commands without starting a process. */
export interface Shell extends Invocation {
  readonly stdin: Readable
  readonly stdout: Stream
  readonly stderr: Stream
  readonly env: Readonly<Record<string, string | undefined>>
  /** Empty if the current folder was removed; no command runs then. */
  readonly cwd: string
  /** Aborted by the first SIGINT or SIGTERM. */
  readonly interrupted: AbortSignal
  /** Receives the function that removes secrets from what the process prints outside of any command. */
  readonly secretsKnown?: (conceal: (text: string) => string) => void
}

/**
 * Makes all paths below the current folder that occur in the text relative to that folder. A path is recognized at its
 * beginning only, because a longer path may contain the same names. Paths below a root stay absolute.
 */
export function relativeTo(text: string, cwd: string): string {
  if (cwd.endsWith(sep)) return text
  const begins = (at: number) => at === 0 || /[\s"'`([{<,;:=]/.test(text.charAt(at - 1))
  return text.replaceAll(cwd + sep, (found, at: number) => (begins(at) ? '' : found))
}

export const exit = { ok: 0, failed: 1, usage: 2, unavailable: 3, refused: 4, unwell: 5, interrupted: 130 } as const

export type ExitCode = (typeof exit)[keyof typeof exit]

/** An error that ends a command and is not a ToolwayError. */
export class CommandError extends Error {
  readonly code: string
  readonly exitCode: ExitCode
  readonly hint: string | undefined

  constructor(message: string, facts: Pick<CommandError, 'code' | 'exitCode'>, hint?: string) {
    super(message)
    this.code = facts.code
    this.exitCode = facts.exitCode
    this.hint = hint
  }
}

/** The error for a command line that was parsed but cannot be executed. */
export class UsageError extends CommandError {
  constructor(message: string, hint?: string) {
    super(message, { code: 'USAGE', exitCode: exit.usage }, hint)
  }
}

/** Reports invalid arguments as wrong usage. */
export async function invalidAsUsage<T>(work: () => T | Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (thrown) {
    const isUsage = thrown instanceof ToolwayError && thrown.code === 'INVALID_ARGUMENTS'
    throw isUsage ? new UsageError(thrown.message) : thrown
  }
}

// Scripts may retry after exit code 3, because nothing was done. A failure with an unknown outcome gets exit code 1.
const exitCodes: Partial<Record<ErrorCode, ExitCode>> = {
  TOOL_NOT_FOUND: exit.usage,
  SERVER_NOT_FOUND: exit.usage,
  INVALID_ARGUMENTS: exit.usage,
  SERVER_UNAVAILABLE: exit.unavailable,
  SERVER_UNHEALTHY: exit.unavailable,
  CIRCUIT_OPEN: exit.unavailable,
  OVERLOADED: exit.unavailable,
  SERVER_DISABLED: exit.refused,
  CANCELLED: exit.interrupted,
}

export function exitCodeOf(thrown: unknown): ExitCode {
  if (thrown instanceof ToolwayError) return exitCodes[thrown.code] ?? (thrown.kind.denial ? exit.refused : exit.failed)
  if (thrown instanceof CommandError) return thrown.exitCode
  return thrown instanceof FileProblem || thrown instanceof ConfigError ? exit.usage : exit.failed
}

export const exitCodeHelp = `Exit codes:
  0    success
  1    the tool or the command failed, or its outcome is unknown
  2    invalid usage, arguments or configuration
  3    a server is unavailable; nothing was done
  4    refused by policy
  5    doctor found problems
  130  interrupted`

type Format = Parameters<typeof styleText>[0]

/** Colours text if the stream is a terminal and `NO_COLOR` does not forbid it. */
export type Paint = (format: Format, text: string) => string

/** The width of a terminal. Some pseudo-terminals, such as those of containers and CI, report 0 columns. */
export const columnsOf = ({ columns }: Stream, unknown = 80): number => columns || unknown

/** Whether the stream is a terminal with escape sequences. `TERM=dumb` has none. */
export const canErase = ({ isTTY }: Stream, { TERM }: Shell['env']): boolean => isTTY === true && TERM !== 'dumb'

export type Output = ReturnType<typeof createOutput>

/** Where a command prints: results on stdout, everything else on stderr. */
export function createOutput({ stdout, stderr }: Pick<Shell, 'stdout' | 'stderr'>, json = false) {
  const terminal = stdout.isTTY === true
  const width = terminal ? columnsOf(stdout) : Number.POSITIVE_INFINITY
  const print = (line: string) => void stdout.write(line + '\n')
  const note = (line: string) => void stderr.write(line + '\n')
  const paint: Paint = (format, text) => styleText(format, text, { stream: stdout })
  const paintNote: Paint = (format, text) => styleText(format, text, { stream: stderr })
  return {
    /** Whether the result is printed as JSON. */
    json,
    /** Whether stdout is a terminal. */
    terminal,
    /** Maximum width of a line in cells; unlimited without a terminal. */
    width,
    print,
    /** Prints the result as JSON: on one line, or indented on a terminal. */
    value: (value: unknown) => print(JSON.stringify(value, undefined, terminal ? 2 : undefined)),
    table<Row>(rows: readonly Row[], columns: readonly Column<Row>[]) {
      for (const line of table(columns, rows, { width, heading: (title) => paint('dim', title) })) print(line)
    },
    /** Prints an empty line, a heading and indented lines; nothing if there are no lines. */
    section(title: string, lines: readonly string[]) {
      if (lines.length === 0) return
      for (const line of ['', paint('bold', title), ...lines.map((text) => `  ${text}`)]) print(line)
    },
    note,
    /** Prints a line to stderr in yellow. */
    warn: (line: string) => note(paintNote('yellow', line)),
    paint,
    paintNote,
  }
}

export const isInteractive = ({ stdin, stderr }: Shell): boolean =>
  (stdin as { isTTY?: boolean }).isTTY === true && stderr.isTTY === true

/** Asks for confirmation. Any answer other than yes means no, and so does an interrupt. */
export async function confirm(shell: Shell, question: string): Promise<boolean> {
  using lines = createInterface({ input: shell.stdin, output: shell.stderr })
  const answer = lines.question(`${question} [y/N] `, { signal: shell.interrupted })
  return isYes(await answer.catch(() => ''))
}

export const isYes = (answer: string): boolean => /^\s*y(es)?\s*$/i.test(answer)

export type ProgressLine = ReturnType<typeof createProgress>

/** A line on stderr that shows what the command is waiting for, if it can be erased again; removed on disposal. */
export function createProgress({ stderr, env }: Pick<Shell, 'stderr' | 'env'>) {
  let shown = ''
  return {
    show(text: string) {
      if (!canErase(stderr, env)) return
      const line = cut(oneLine(text), columnsOf(stderr) - 1)
      if (line !== shown) stderr.write('\r\x1b[2K' + line)
      shown = line
    },
    [Symbol.dispose]() {
      if (shown !== '') stderr.write('\r\x1b[2K')
      shown = ''
    },
  }
}

/** A path relative to the current folder, or with `~`. */
export function shortPath(path: string, { cwd, env }: Pick<Shell, 'cwd' | 'env'>): string {
  const home = homeOf(env)
  if (cwd !== home && path.startsWith(cwd + sep)) return path.slice(cwd.length + 1)
  return tildePath(path, home)
}

export const readNamedFile = (file: string, { cwd }: Shell): Promise<string> =>
  readFile(resolve(cwd, file), 'utf8').catch(({ code, message }: NodeJS.ErrnoException) => {
    throw new UsageError(code === 'ENOENT' ? `There is no file ${file}.` : `Cannot read ${file}: ${message}.`)
  })

/** Edits the text of a file; a FileProblem becomes a UsageError that names the file. */
export function editText<T>(file: string, edit: () => T): T {
  try {
    return edit()
  } catch (thrown) {
    if (!(thrown instanceof FileProblem)) throw thrown
    throw new UsageError(`${file} was not changed: ${thrown.message.replace(/\.$/, '')}.`, thrown.hint)
  }
}
