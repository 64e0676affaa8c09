import type { ServerConfig } from '../config/schema.ts'
import type { SourceStatus } from '../core/source-status.ts'
import { isKnownRevision } from '../wire/revisions.ts'
import { type BreakerCondition, judge } from './health.ts'
import type { Introduction } from './introduction.ts'
import type { Lines } from './lines.ts'
import type { Outlook } from './outlook.ts'
import { hidesEveryTool } from './traits.ts'

/** All that the status of a server is put together from. */
export interface StatusParts {
  readonly config: ServerConfig
  readonly lines: Pick<Lines, 'connected' | 'failure' | 'pauseMs' | 'lost'>
  readonly outlook: Pick<Outlook, 'heard' | 'missing' | 'failure' | 'descriptors'>
  /** What the server said of itself last, in this run or before it. */
  readonly introduction: Introduction | undefined
  /** Its first connection or listing in this run is under way. */
  readonly starting: boolean
  readonly strain: string | undefined
  readonly paused: boolean
  readonly since: number
  readonly latencyMs: number | undefined
  readonly breaker: BreakerCondition
}

/** How a server is, as everybody is told. */
export function serverStatus(parts: StatusParts): SourceStatus {
  const { config, lines, outlook, introduction: known, starting, strain, paused, since, latencyMs, breaker } = parts
  const { connected, failure, pauseMs, lost } = lines
  const { heard, missing, failure: listFailure, descriptors } = outlook
  const line = { connected, failure, pauseMs, lost, starting, strain }
  const unknownProtocol =
    known && !isKnownRevision(known.protocolVersion, known.era) ? excerpt(known.protocolVersion) : undefined
  const knowledge = { unknownProtocol, listFailure, missing, heard, knownSince: descriptors?.fetchedAt }
  const lastError = (failure ?? lost)?.message
  const judgement = judge({ disabled: config.disabled, paused, ...line, ...knowledge }, breaker)
  const hidden = judgement.reason === '' && hidesEveryTool(config, descriptors?.tools ?? [])
  return {
    ...judgement,
    ...(hidden && { reason: nothingToRead }),
    since,
    description: text(config.description) ?? text(known?.serverInfo.title) ?? text(known?.serverInfo.name) ?? '',
    transport: config.transport,
    ...(known && { era: known.era, protocolVersion: known.protocolVersion }),
    ...(lastError !== undefined && { lastError }),
    ...(latencyMs !== undefined && { latencyMs: Math.round(latencyMs * 100) / 100 }),
    breaker: breaker.state,
  }
}

/** The server chose it, and it is shown to people. */
const excerpt = (version: string): string => JSON.stringify(version.slice(0, 40))

const nothingToRead =
  'Read-only, and none of its tools is known to be a read, so none can be used: list those that read in readTools, or set trustAnnotations to count its readOnlyHint.'

const text = (value: unknown): string | undefined => (typeof value === 'string' && value !== '' ? value : undefined)
