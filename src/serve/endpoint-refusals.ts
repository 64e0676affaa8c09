import type { Id } from '../wire/message.ts'
import { legacyRevisions } from '../wire/revisions.ts'
import { Refusal, rpc } from './refusal.ts'

/** Not a 404: to clients that would mean that their session is over. */
export const unknownEvent = () =>
  new Refusal(
    400,
    rpc.request,
    'The Last-Event-ID header names no event that is kept here: open a stream without it, and send again what was not answered.',
  )

export const unknownRevision = () =>
  new Refusal(
    400,
    rpc.request,
    `The MCP-Protocol-Version header names a revision that is not served here: use one of ${legacyRevisions.join(', ')}.`,
  )

export const notAcceptable = () =>
  new Refusal(406, rpc.request, 'The Accept header must name application/json and text/event-stream.')

export const shuttingDown = (id?: Id) =>
  Refusal.of('OVERLOADED', 'This gateway is shutting down: try again in a moment.', {
    ...(id !== undefined && { id }),
    retryAfterMs: 1_000,
    headers: { Connection: 'close' },
  })
