import type { Clock } from '../../core/clock.ts'
import type { Log } from '../../core/log.ts'
import { withoutHidden } from '../../lib/characters.ts'
import { shorten } from '../../lib/message-text.ts'

/** A line of output and when it was written, in milliseconds since the epoch. */
export interface OutputLine {
  readonly at: number
  readonly text: string
}

export type RedactLine = (text: string) => string

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
const minRedactedLength = 8

interface ProcessOutputOptions {
  readonly server: string
  readonly secrets: readonly string[]
  /** Removes secrets in any spelling. The values in `secrets` are also removed. */
  readonly redact?: RedactLine | undefined
  /** Receives the lines of stderr as they are logged. */
  readonly wrote?: ((line: OutputLine) => void) | undefined
  readonly clock: Clock
  readonly log: Log
}

/** Process output outside the protocol, logged at debug level after rate limiting, truncation and redaction. */
export class ProcessOutput {
  readonly #options: ProcessOutputOptions
  readonly #secrets: readonly string[]
  /** The last lines of stderr. They are redacted only when they are read. */
  #recent: Buffer[] = []
  #stray: Buffer | undefined
  #second = 0
  #linesInSecond = 0

  constructor(options: ProcessOutputOptions) {
    this.#options = options
    this.#secrets = options.secrets
      .filter((secret) => secret.length >= minRedactedLength)
      .toSorted((a, b) => b.length - a.length)
  }

  /** The line of stderr that most likely names the cause, for error messages: a late one, that of an error if possible. */
  get last(): string {
    const meaningful = this.#recent
      .map(lineText)
      .filter((text) => printableText(text) !== '' && !epilogue.test(printableText(text)))
    const lastError = (lines: readonly string[]) =>
      lines.slice(-maxAfterError).findLast((text) => errorLine.test(printableText(text)))
    // Some programs print their whole help after the error.
    const help = meaningful.findIndex((text) => helpHeading.test(printableText(text)))
    const error = lastError(meaningful) ?? lastError(meaningful.slice(0, Math.max(help, 0)))
    return this.#clean(error ?? meaningful.at(-1) ?? '', maxQuotedLength)
  }

  /** The first line of stdout, which is not for such output. */
  get stray(): string {
    return this.#stray === undefined ? '' : this.#clean(lineText(this.#stray), maxQuotedLength)
  }

  line(stream: 'stdout' | 'stderr', bytes: Buffer): void {
    // Skip lines early: a process may write very fast, so most lines must cost almost nothing.
    if (isBlankLine(bytes)) return
    const { server, clock, log } = this.#options
    if (stream === 'stderr') this.#recent.push(bytes)
    else this.#stray ??= bytes
    if (this.#recent.length > 2 * maxRecent) this.#recent = this.#recent.slice(-maxRecent)
    const now = Math.floor(clock.monotonic() / 1000)
    if (now !== this.#second) {
      const dropped = this.#linesInSecond - maxLinesPerSecond
      if (dropped > 0) log.debug({ server, lines: dropped }, 'dropped output lines (rate limit)')
      this.#second = now
      this.#linesInSecond = 0
    }
    if (++this.#linesInSecond > maxLinesPerSecond) return
    const text = lineText(bytes)
    if (printableText(text) === '') return
    const line = this.#clean(text, maxLoggedLine)
    if (stream === 'stderr') this.#options.wrote?.({ at: clock.now(), text: line })
    log.debug({ server, stream, line }, 'server output')
  }

  /** Cleans text for display. Redacts twice, because removing control characters can join the parts of a secret. */
  #clean(text: string, maxLength: number): string {
    return shorten(this.#redact(printableText(this.#redact(text).slice(0, maxLoggedLine))), maxLength)
  }

  #redact(text: string): string {
    const rest = this.#secrets.reduce((left, secret) => left.replaceAll(secret, '[redacted]'), text)
    return this.#options.redact?.(rest) ?? rest
  }
}

const helpHeading = /^(?:usage|options|commands|examples)\b.*:/i

const lineText = (bytes: Buffer): string => bytes.toString('utf8', 0, maxLoggedLine + beyond)

const spaceByte = 0x20

function isBlankLine(bytes: Buffer): boolean {
  for (let at = 0; at < bytes.length; at++) if ((bytes[at] as number) > spaceByte) return false
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
const printableText = (text: string): string =>
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
