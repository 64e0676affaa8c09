import type { Clock } from '../../core/clock.ts'
import type { Log } from '../../core/log.ts'

/** What a process writes beside the protocol: logged at debug, bounded in length and in pace, without its secrets. */
export interface ProcessOutput {
  /** The last line of stderr that had something to say, fit for a sentence. */
  readonly last: string
  line(stream: 'stdout' | 'stderr', bytes: Buffer): void
}

/** Takes out of a text what nobody may see. */
export type RedactText = (text: string) => string

/** How much of a child's stderr is kept: enough for a stack trace and its cause. */
export const maxStderr = 64 * 1024
/** How much of one line reaches the log. */
const maxLoggedLine = 2 * 1024
const maxLinesPerSecond = 200
const maxQuotedLength = 300
/** So many lines may follow the one that says what went wrong. */
const maxRecent = 64
/** So much beyond the cut is looked at too, so that a secret that the cut would halve is found whole. */
const beyond = 2 * 1024
/** Shorter values are words such as "true" or "8080", which would turn up everywhere. */
const minSecretLength = 8

export function createProcessOutput(options: {
  readonly server: string
  readonly secrets: readonly string[]
  /** Takes secrets out of a text, however they are spelt there; the values themselves are taken out in any case. */
  readonly redact?: RedactText | undefined
  /** Hears the lines of stderr that are logged, as they are logged. */
  readonly wrote?: ((line: string) => void) | undefined
  readonly clock: Clock
  readonly log: Log
}): ProcessOutput {
  const { server, redact = asItIs, clock, log } = options
  const secrets = options.secrets
    .filter((secret) => secret.length >= minSecretLength)
    .toSorted((a, b) => b.length - a.length)
  /** The last lines of stderr as they were written: what nobody asks for need be neither read nor redacted. */
  let recent: Buffer[] = []
  let second = 0
  let lines = 0

  const withoutSecrets = (text: string): string => {
    let rest = text
    for (const secret of secrets) rest = rest.replaceAll(secret, '[redacted]')
    return redact(rest)
  }

  /** A secret may hold characters that are taken out, and be put together by taking them out. */
  const clean = (text: string, longest: number): string => {
    const whole = withoutSecrets(plain(withoutSecrets(text).slice(0, maxLoggedLine)))
    return whole.length > longest ? `${whole.slice(0, longest)}…` : whole
  }

  return {
    get last() {
      const words = recent.map(textOf).findLast((text) => plain(text) !== '' && !epilogue.test(plain(text)))
      return clean(words ?? '', maxQuotedLength)
    },
    line(stream, bytes) {
      // Whoever writes as fast as it can is read as fast: what comes of most lines must cost next to nothing.
      if (isBlank(bytes)) return
      if (stream === 'stderr') recent.push(bytes)
      if (recent.length > 2 * maxRecent) recent = recent.slice(-maxRecent)
      const now = Math.floor(clock.monotonic() / 1000)
      if (now !== second) {
        if (lines > maxLinesPerSecond)
          log.debug({ server, lines: lines - maxLinesPerSecond }, 'left out lines of a server')
        second = now
        lines = 0
      }
      if (++lines > maxLinesPerSecond) return
      const text = textOf(bytes)
      if (plain(text) === '') return
      const line = clean(text, maxLoggedLine)
      if (stream === 'stderr') options.wrote?.(line)
      log.debug({ server, stream, line }, 'a server wrote beside the protocol')
    },
  }
}

const asItIs: RedactText = (text) => text

const textOf = (bytes: Buffer): string => bytes.toString('utf8', 0, maxLoggedLine + beyond)

const SPACE = 0x20

function isBlank(bytes: Buffer): boolean {
  for (let at = 0; at < bytes.length; at++) if ((bytes[at] as number) > SPACE) return false
  return true
}

/** What follows on the line that says what went wrong: where a log is, advice, a stack and what hangs on an error. */
const epilogue =
  /^(?:npm (?:error|ERR!)( 404)?( Note that .*| tarball, .*| A complete log .*)?|hint: .*|at .*|\w+: (?:'.*'|-?\d+|\[.*\]),?|Node\.js v.*|\W+)$/

/** Terminal colours and other control characters would forge what an operator sees. */
const plain = (text: string): string =>
  text
    .replace(/\u001b\[[0-9;?]*[ -/]*[@-~]/g, '')
    .replace(/[\u0000-\u0020\u007f-\u009f]+/g, ' ')
    .trim()

/** The last lines of a text without end; they outlive the process that wrote them, because they may say why it is gone. */
interface RecentLines {
  push(line: string): void
  /** Oldest first. */
  lines(): readonly string[]
}

/** Enough for a stack trace and what led to it. */
const maxLines = 200

export function createRecentLines(most = maxLines): RecentLines {
  let kept: string[] = []
  return {
    push(line) {
      kept.push(line)
      // Cut now and then instead of every time.
      if (kept.length > 2 * most) kept = kept.slice(-most)
    },
    lines: () => kept.slice(-most),
  }
}

/** The last bytes of an endless stream, in a space that never grows. */
interface ByteTail {
  push(chunk: Buffer): void
  text(): string
}

export function createByteTail(size: number): ByteTail {
  const ring = Buffer.alloc(size)
  let total = 0
  return {
    push(chunk) {
      const last = chunk.subarray(Math.max(0, chunk.length - size))
      const at = (total + chunk.length - last.length) % size
      const fits = Math.min(last.length, size - at)
      last.copy(ring, at, 0, fits)
      last.copy(ring, 0, fits)
      total += chunk.length
    },
    text() {
      const at = total % size
      const bytes = total <= size ? ring.subarray(0, total) : Buffer.concat([ring.subarray(at), ring.subarray(0, at)])
      return bytes.toString('utf8')
    },
  }
}
