import type { Clock } from '../../core/clock.ts'
import type { Log } from '../../core/log.ts'
import { maxLoggedLine } from '../../wire/limits.ts'

/** What a process writes beside the protocol: logged at debug, bounded in length and in pace, without its secrets. */
export interface Chatter {
  /** The last line that had something in it, fit for a sentence. */
  readonly last: string
  line(stream: 'stdout' | 'stderr', bytes: Buffer): void
}

const maxLinesPerSecond = 200
const maxQuotedLength = 300
/** Shorter values are words such as "true" or "8080", which would turn up everywhere. */
const minSecretLength = 8

export function createChatter(options: {
  readonly server: string
  readonly secrets: readonly string[]
  readonly clock: Clock
  readonly log: Log
}): Chatter {
  const { server, clock, log } = options
  const secrets = options.secrets
    .filter((secret) => secret.length >= minSecretLength)
    .toSorted((a, b) => b.length - a.length)
  let last = ''
  let second = 0
  let lines = 0

  /** Terminal colours and other control characters would forge what an operator sees. */
  const readable = (bytes: Buffer): string => {
    let text = bytes.toString('utf8', 0, maxLoggedLine)
    for (const secret of secrets) text = text.replaceAll(secret, '[redacted]')
    return text
      .replace(/\u001b\[[0-9;?]*[ -/]*[@-~]/g, '')
      .replace(/[\u0000-\u0020\u007f-\u009f]+/g, ' ')
      .trim()
  }

  return {
    get last() {
      return last
    },
    line(stream, bytes) {
      const now = Math.floor(clock.now() / 1000)
      if (now !== second) {
        if (lines > maxLinesPerSecond)
          log.debug({ server, lines: lines - maxLinesPerSecond }, 'left out lines of a server')
        second = now
        lines = 0
      }
      const withinPace = ++lines <= maxLinesPerSecond
      if (!withinPace && stream === 'stdout') return
      const text = readable(bytes)
      if (text === '') return
      if (stream === 'stderr') last = text.length > maxQuotedLength ? `${text.slice(0, maxQuotedLength)}…` : text
      if (withinPace) log.debug({ server, stream, line: text }, 'a server wrote beside the protocol')
    },
  }
}
