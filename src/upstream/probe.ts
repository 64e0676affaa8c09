import type { Clock } from '../core/clock.ts'
import { deadline, waitFor } from '../core/deadline.ts'
import { ServerError, ToolwayError } from '../core/errors.ts'
import type { Connection } from './connection.ts'
import { type GreetOptions, initialize } from './eras/legacy.ts'
import { discover, NotModern } from './eras/modern.ts'
import type { Introduction } from './introduction.ts'
import { statusOf } from './transports/failures.ts'

/** Who does not answer an unknown question is not waited for longer; a process may only be slow to start. */
const silenceMs = { stdio: 2_000, http: 5_000, sse: 5_000 } as const

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
  let first: unknown
  try {
    return await soon(modern, connection, options)
  } catch (error) {
    if (!mayBeLegacy(error)) throw error
    first = error
  }
  try {
    return await initialize(connection, options)
  } catch (error) {
    // Slow to start, and of the stateless era after all: the answer to the first question is on its way or here.
    if (connection.transport.kind === 'stdio' && error instanceof ServerError) {
      return await modern.catch(() => Promise.reject(error))
    }
    // A server that fails whatever it is asked has said why the first time.
    throw (statusOf(first) ?? 0) >= 500 ? first : error
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
  using limit = deadline(options.clock, silenceMs[transport.kind], () => new Silence(), options.signal)
  return await waitFor(modern, limit.signal)
}

/** Credentials that were refused would be refused again; whatever else is no clear answer may be a server of the other era. */
function mayBeLegacy(error: unknown): boolean {
  if (error instanceof NotModern || error instanceof Silence || error instanceof ServerError) return true
  const status = error instanceof ToolwayError ? statusOf(error) : undefined
  return status !== undefined && status >= 400 && status !== 401 && status !== 403 && status !== 429
}
