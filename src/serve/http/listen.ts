import { once } from 'node:events'
import type { Server } from 'node:http'
import { type AddressInfo, createServer } from 'node:net'
import { CannotListen } from '../../core/errors.ts'

/**
 * Starts listening and returns the port. `earlier` is the port of workers that ran before: clients know it, so it is used
 * again if any free port will do. Rejects with CannotListen, whose message says what to do.
 */
export async function listen(server: Server, host: string, port: number, earlier?: number): Promise<number> {
  const chosen = await bindPort(server, host, port)
  if (port !== 0 || earlier === undefined || chosen === earlier) return chosen
  // No other worker is running, or they would share a port. Nobody knows the new one, so there is nothing to wait for.
  server.close()
  return bindPort(server, host, earlier)
}

async function bindPort(server: Server, host: string, port: number): Promise<number> {
  try {
    server.listen(port, host)
    await once(server, 'listening')
  } catch (error) {
    throw explainListenError(error as NodeJS.ErrnoException, host, port)
  }
  return (server.address() as AddressInfo).port
}

function explainListenError(error: NodeJS.ErrnoException, host: string, port: number): CannotListen {
  // A machine without 127.0.0.1 has only IPv6 addresses.
  const other = host.startsWith('127.') || host === 'localhost' ? '::1' : '127.0.0.1'
  const reasons: Record<string, string> = {
    EADDRINUSE: `port ${port} on ${host} is in use: stop the program that uses it, or choose another with server.port or --port`,
    EACCES: `this user may not bind port ${port} on ${host}: choose one above 1023 with server.port or --port`,
    EADDRNOTAVAIL: `${host} is not an address of this machine: set server.host or --host to one that is, such as ${other}`,
    ENOTFOUND: `the name ${host} does not resolve: set server.host or --host to an address, such as 127.0.0.1`,
  }
  const reason = reasons[error.code ?? ''] ?? `${error.message}: check server.host and server.port`
  return new CannotListen(`Toolway cannot listen: ${reason}.`, { cause: error })
}

/** Opens a port for this worker alone, in addition to the shared main port. Both are served in the same way. */
export async function openPrivatePort(server: Server, host: string) {
  const listener = createServer((socket) => server.emit('connection', socket))
  listener.listen({ port: 0, host, exclusive: true })
  await once(listener, 'listening')
  return {
    port: (listener.address() as AddressInfo).port,
    /** Stops listening. Resolves when the open connections have ended. */
    close: () => new Promise<void>((resolve) => listener.close(() => resolve())),
  }
}
