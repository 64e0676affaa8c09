import type { ToolwayError } from '../../core/errors.ts'
import type { Log } from '../../core/log.ts'
import type { ServerFinding } from '../../core/source-status.ts'
import { quote } from '../../lib/message-text.ts'
import { written } from '../listing/list-reader.ts'
import type { ServerListing } from '../listing/server-listing.ts'
import { LimitExceeded } from '../transports/transport-errors.ts'

interface ExceededLimit {
  readonly limit: LimitExceeded
  readonly method: string
  count: number
  /** The entry that was called last. */
  entry: string
}

/** How many findings about lists are remembered as logged. */
const maxLogged = 256

/** What Toolway shortened, left out or refused of a server's messages. Logs each finding once. */
export function createServerFindings(server: string, log: Log) {
  const exceededLimits = new Map<string, ExceededLimit>()
  const withoutCall = new Map<LimitExceeded['kind'], ServerFinding>()
  const logged = new Set<string>()

  const warn = ({ message, ...facts }: ServerFinding): void => {
    const key = JSON.stringify([facts, message])
    if (logged.has(key)) return
    if (logged.size >= maxLogged) logged.clear()
    logged.add(key)
    log.warn({ server, ...facts, reason: message }, 'the server sent something that was shortened, left out or refused')
  }

  return {
    /** Logs what is new in a listing. */
    listed(listing: ListingWithFindings): void {
      for (const finding of ofListing(listing)) warn(finding)
    },
    /** Counts a result that exceeds a limit. Returns how many there were with this method. */
    exceeded(limit: LimitExceeded, method: string, entry: string): number {
      const key = `${limit.kind} ${method}`
      const known = exceededLimits.get(key) ?? { limit, method, count: 0, entry }
      known.count++
      known.entry = entry
      exceededLimits.set(key, known)
      if (known.count === 1) warn(resultFinding(known))
      return known.count
    },
    /** Records a limit that was exceeded without a call that failed for it. Returns whether that is new. */
    exceededWithoutCall(limit: LimitExceeded): boolean {
      if (withoutCall.has(limit.kind)) return false
      const finding = messageFinding(limit)
      withoutCall.set(limit.kind, finding)
      warn(finding)
      return true
    },
    of(
      listing: ListingWithFindings,
      { failure, lost }: { readonly failure?: ToolwayError | undefined; readonly lost?: ToolwayError | undefined },
    ): readonly ServerFinding[] {
      const found = [...ofListing(listing), ...[...exceededLimits.values()].map(resultFinding), ...withoutCall.values()]
      // A message that closed the connection is reported only here if it did not answer a call.
      const limit = exceededFinding(failure) ?? exceededFinding(lost)
      return limit && !found.some(({ kind }) => kind === limit.kind) ? [...found, limit] : found
    },
  }
}

type ListingWithFindings = Pick<ServerListing, 'descriptors' | 'failure' | 'missing'>

function ofListing({ descriptors, failure, missing }: ListingWithFindings): readonly ServerFinding[] {
  const limit = exceededFinding(failure)
  return [...(descriptors?.findings ?? []), ...findingsOfFailed(missing), ...(limit ? [limit] : [])]
}

/** The findings about lists that failed because a page exceeded a limit. */
export function findingsOfFailed(lists: ServerListing['missing']): readonly ServerFinding[] {
  return lists.flatMap(({ method, limit }) => {
    const finding = limit && messageFinding(limit)
    return finding ? [{ ...finding, method, message: `${method}: ${finding.message}` }] : []
  })
}

/** The finding for an error about a message that exceeds a limit; undefined for other errors. */
export function exceededFinding(thrown: unknown): ServerFinding | undefined {
  const limit = LimitExceeded.in(thrown)
  return limit && messageFinding(limit)
}

const limitTexts: Readonly<Record<LimitExceeded['kind'], (limit: number) => string>> = {
  'large-message': (limit) => `a message of more than ${limit / 1024 / 1024} MiB`,
  'deep-nesting': (limit) => `a message nested deeper than ${limit} levels`,
  'too-many-blocks': (limit) => `a result with more than ${written(limit)} content blocks`,
  'too-many-values': (limit) => `a message with more than ${written(limit)} values`,
  'stray-output': () => 'other output than MCP messages on stdout, which is only for these',
  'unusable-response': () => 'a response that is not valid JSON-RPC, or whose id is not that of a request',
  flood: (limit) => `notifications or other output faster than ${limit / 1024 / 1024} MiB a second`,
}

function messageFinding({ kind, limit, message }: LimitExceeded): ServerFinding {
  const sent = `The server sent ${limitTexts[kind](limit)}`
  if (kind === 'stray-output') return { kind, message: `${sent}: ${message}. It was ignored; log to stderr instead.` }
  if (kind === 'unusable-response') return { kind, message: `${sent}; it was ignored, so a call may have timed out.` }
  return { kind, limit, message: `${sent} (a fixed limit); ${kind === 'flood' ? 'it has to wait' : 'it was refused'}.` }
}

const resultFinding = ({ limit: { kind, limit }, method, count, entry }: ExceededLimit): ServerFinding => {
  const times = count === 1 ? 'once' : `${written(count)} times`
  const message = `${method}: the server sent ${limitTexts[kind](limit)} (a fixed limit) ${times}, last for ${quote(entry)}; the call failed.`
  return { kind, method, limit, count, message }
}
