import type { Clock } from '../../core/clock.ts'
import type { Log } from '../../core/log.ts'
import { withoutHidden } from '../../lib/characters.ts'
import { shorten } from '../../lib/message-text.ts'

/** Process output outside the protocol, logged at debug level after rate limiting, truncation and redaction. */
export interface ProcessOutput {
  /** The line of stderr that most likely names the cause, for error messages: a late one, that of an error if possible. */
  readonly last: string
  /** The first line of stdout, which is not for such output. */
  readonly stray: string
  line(stream: 'stdout' | 'stderr', bytes: Buffer): void
}

/** A line of output and when it was written, in milliseconds since the epoch. */
export interface OutputLine {
  readonly at: number
  readonly text: string
}

export type RedactLine = (text: string) => string

/** How long a line of stderr may be. */
export const maxStderrLine = 64 * 1024
const maxLoggedLine = 2 * 1024
const maxLinesPerSecond = 200
const maxQuotedLength = 300
/** How many recent lines are searched for the cause of a failure. The cause may be followed by other lines. */
const maxRecent = 64
/** How many meaningful lines, from that of the error on, may end the output. An earlier error is not the cause. */
const maxAfterError = 10
/** How many bytes beyond the logged part are searched for secrets, because truncation may split a secret. */
const beyond = 2 * 1024
/** Shorter values are not redacted, because values such as "true" or "8080" occur everywhere. */
const minSecretLength = 8

export function createProcessOutput(options: {
  readonly server: string
  readonly secrets: readonly string[]
  /** Removes secrets in any spelling. The values in `secrets` are also removed. */
  readonly redact?: RedactLine | undefined
  /** Receives the lines of stderr as they are logged. */
  readonly wrote?: ((line: OutputLine) => void) | undefined
  readonly clock: Clock
  readonly log: Log
}): ProcessOutput {
  const { server, redact = (text: string) => text, clock, log } = options
  const secrets = options.secrets
    .filter((secret) => secret.length >= minSecretLength)
    .toSorted((a, b) => b.length - a.length)
  /** The last lines of stderr. They are redacted only when they are read. */
  let recent: Buffer[] = []
  let stray: Buffer | undefined
  let second = 0
  let lines = 0

  const withoutSecrets = (text: string): string => {
    let rest = text
    for (const secret of secrets) rest = rest.replaceAll(secret, '[redacted]')
    return redact(rest)
  }

  /** Cleans text for display. Redacts twice, because removing control characters can join the parts of a secret. */
  const clean = (text: string, maxLength: number): string => {
    return shorten(withoutSecrets(plain(withoutSecrets(text).slice(0, maxLoggedLine))), maxLength)
  }

  return {
    get last() {
      const meaningful = recent.map(textOf).filter((text) => plain(text) !== '' && !epilogue.test(plain(text)))
      const lastError = (lines: readonly string[]) =>
        lines.slice(-maxAfterError).findLast((text) => errorLine.test(plain(text)))
      // Some programs print their whole help after the error.
      const help = meaningful.findIndex((text) => helpHeading.test(plain(text)))
      const error = lastError(meaningful) ?? lastError(meaningful.slice(0, Math.max(help, 0)))
      return clean(error ?? meaningful.at(-1) ?? '', maxQuotedLength)
    },
    get stray() {
      return stray === undefined ? '' : clean(textOf(stray), maxQuotedLength)
    },
    line(stream, bytes) {
      // Skip lines early: a process may write very fast, so most lines must cost almost nothing.
      if (isBlank(bytes)) return
      if (stream === 'stderr') recent.push(bytes)
      else stray ??= bytes
      if (recent.length > 2 * maxRecent) recent = recent.slice(-maxRecent)
      const now = Math.floor(clock.monotonic() / 1000)
      if (now !== second) {
        if (lines > maxLinesPerSecond)
          log.debug({ server, lines: lines - maxLinesPerSecond }, 'dropped output lines (rate limit)')
        second = now
        lines = 0
      }
      if (++lines > maxLinesPerSecond) return
      const text = textOf(bytes)
      if (plain(text) === '') return
      const line = clean(text, maxLoggedLine)
      if (stream === 'stderr') options.wrote?.({ at: clock.now(), text: line })
      log.debug({ server, stream, line }, 'server output')
    },
  }
}

/** The first line of a program's help. */
const helpHeading = /^(?:usage|options|commands|examples)\b.*:/i

const textOf = (bytes: Buffer): string => bytes.toString('utf8', 0, maxLoggedLine + beyond)

const SPACE = 0x20

function isBlank(bytes: Buffer): boolean {
  for (let at = 0; at < bytes.length; at++) if ((bytes[at] as number) > SPACE) return false
  return true
}

/**
 * Matches lines that typically follow the cause: log locations, hints, stack frames and the properties of a Node error,
 * whose names start with a small letter. `KeyError: 'x'` is a cause.
 */
const epilogue =
  /^(?:npm (?:error|ERR!)( 404)?( Note that .*| tarball, .*| A complete log .*)?|hint: .*|at .*|File ".*", line \d+.*|[a-z]\w*: (?:'.*'|-?\d+|\[.*\]),?|Node\.js v.*|\W+)$/

/**
 * Matches lines that report an error or its cause: `Error: …`, `KeyError: …`, `[error] …`, `12:00 FATAL …`,
 * `Caused by: …`.
 */
const errorLine =
  /(?:[Ee]rror|[Ee]xception|[Ff]atal|[Pp]anic)(?:\[\w+\])?[:\])]|^(?:[Ee]rror|[Ff]atal|[Cc]aused?(?: by)?:)|\b(?:ERROR|FATAL|CRITICAL)\b/

/** Removes terminal colours and other hidden characters, which could mislead an operator or a model. */
const plain = (text: string): string =>
  withoutHidden(text.replace(/\u001b\[[0-9;?]*[ -/]*[@-~]/g, '').replace(/[\u0000-\u0020\u007f-\u009f]+/g, ' ')).trim()

/** Keeps the last lines of output, oldest first, even after the process has ended: they may show why it ended. */
export function createRecentLines(maxLines = 200) {
  let kept: OutputLine[] = []
  return {
    push(line: OutputLine): void {
      kept.push(line)
      // Truncate only now and then, instead of after every line.
      if (kept.length > 2 * maxLines) kept = kept.slice(-maxLines)
    },
    lines: (): readonly OutputLine[] => kept.slice(-maxLines),
  }
}
