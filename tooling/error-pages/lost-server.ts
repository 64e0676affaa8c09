import type { ToolwayError } from '../../src/core/errors.ts'
import { silentLog } from '../../src/core/log.ts'
import { ManagedConnection } from '../../src/upstream/connection/managed-connection.ts'
import { ReconnectBackoff } from '../../src/upstream/connection/reconnect.ts'
import { ServerProcess } from '../../src/upstream/transports/child-process.ts'
import { NoResponse } from '../../src/upstream/transports/http-channel.ts'
import { noResponseError, unansweredError } from '../../src/upstream/transports/transport-errors.ts'
import { createManualClock } from '../../tests/fixtures/clock.ts'

/** The error when a command is not installed. */
export const notStarted = (name: string, command: string): Promise<unknown> =>
  ServerProcess.start({ name, command, args: [], env: {}, clock: createManualClock() }).catch((error: unknown) => error)

/** The error of a call during the reconnect backoff. */
export async function inBackoff(server: string, command: string): Promise<unknown> {
  const clock = createManualClock()
  const failure = await notStarted(server, command)
  await using line = new ManagedConnection(
    {
      server,
      backoff: new ReconnectBackoff(clock, { random: () => 1 }),
      idleMs: undefined,
      connectWithinMs: 120_000,
      clock,
      log: silentLog,
    },
    { connect: () => Promise.reject(failure), opened() {}, closed() {}, failed() {} },
  )
  const { signal } = new AbortController()
  const attempt = () => line.open(signal).catch((error: unknown) => error)
  await attempt()
  return attempt()
}

/** The error of a call whose connection is lost before the response. */
export function brokeOff(name: string): ToolwayError {
  const cause = Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' })
  const place = { name, origin: 'https://mcp.example.com', established: true }
  const { message, details } = noResponseError(place, new NoResponse(true, cause)) as ToolwayError
  return unansweredError('tools/call', message, details)
}
