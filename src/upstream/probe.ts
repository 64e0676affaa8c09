import type { Clock } from '../core/clock.ts'
import { deadline, waitFor } from '../core/deadline.ts'
import { ServerError, ToolwayError } from '../core/errors.ts'
import type { Connection } from './connection.ts'
import { type GreetOptions, initialize } from './eras/legacy.ts'
import { discover, NotModern } from './eras/modern.ts'
import type { Introduction } from './introduction.ts'
import { statusOf } from './transports/failures.ts'

/** A process that does not answer an unknown question is not waited for longer; it may only be slow to start. */
const silenceMs = 2_000

/**
 * Finds out which era a server speaks, on the line that will be used: the stateless one is asked for first,
 * and whatever is no clear answer in it leads to the handshake of the other one.
 */
export async function introduce(
  connection: Connection,
  options: GreetOptions & { clock: Clock },
): Promise<Introduction> {
  const modern = discover(connection, options)
  modern.catch(() => {})
  try {
    return await soon(modern, connection, options)
  } catch (error) {
    if (!mayBeLegacy(error)) throw error
  }
  try {
    return await initialize(connection, options)
  } catch (error) {
    // Slow to start, and of the stateless era after all: the answer to the first question is on its way or here.
    if (connection.transport.kind !== 'stdio' || !(error instanceof ServerError)) throw error
    return await modern.catch(() => Promise.reject(error))
  }
}

class Silence extends Error {
  override readonly name = 'Silence'
}

async function soon(
  modern: Promise<Introduction>,
  { transport }: Connection,
  options: GreetOptions & { clock: Clock },
) {
  if (transport.kind !== 'stdio') return modern
  using limit = deadline(options.clock, silenceMs, () => new Silence(), options.signal)
  return await waitFor(modern, limit.signal)
}

/** Credentials that were refused and servers that fail say nothing about the era. */
function mayBeLegacy(error: unknown): boolean {
  if (error instanceof NotModern || error instanceof Silence || error instanceof ServerError) return true
  const status = error instanceof ToolwayError ? statusOf(error) : undefined
  return status !== undefined && status >= 400 && status < 500 && status !== 401 && status !== 403 && status !== 429
}
