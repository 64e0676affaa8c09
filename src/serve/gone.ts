import type { ServerResponse } from 'node:http'
import { ToolwayError } from '../core/errors.ts'

/** Aborted when the client has gone before it was answered. */
export function untilGone(response: ServerResponse): AbortSignal {
  const controller = new AbortController()
  response.once('close', () => {
    if (!response.writableFinished) controller.abort(new ToolwayError('CANCELLED', 'The caller has gone away.'))
  })
  return controller.signal
}
