import { createServer } from 'node:net'
import type { Overview } from '../../admin/contract.ts'
import type { Config } from '../../config/schema.ts'
import type { Clock } from '../../core/clock.ts'
import { pluralize } from '../../lib/message-text.ts'
import { version } from '../../runtime/package-paths.ts'
import { announced, isGateway, originOf, runningGateway } from '../running-gateway.ts'
import { span } from '../table.ts'
import { type CheckContext, type CheckFinding, ok, problem, warning } from './finding.ts'

/** Checks whether the gateway can listen on its address, or already does. */
export async function portFinding(config: Config, context: CheckContext, signal: AbortSignal): Promise<CheckFinding> {
  const { host, port } = config.server
  const place = `${host}:${port}`
  if (port === 0) return ok('server.port is 0: any free port is used')
  const refusal = await tryToListen(host, port)
  if (refusal === undefined) return ok(`${place} is free`)
  if (refusal.code === 'EADDRINUSE') return portTaken(config, context, signal)
  const { message, remedy } = reasons[refusal.code ?? ''] ?? { message: refusal.message, remedy: 'server.port: 4322' }
  return problem(`cannot listen on ${place}: ${message}`, remedy)
}

const reasons: Readonly<Record<string, { readonly message: string; readonly remedy: string }>> = {
  EACCES: { message: 'only root may use ports below 1024', remedy: 'server.port: 4322' },
  EADDRNOTAVAIL: { message: 'this machine has no such address', remedy: 'server.host: 127.0.0.1' },
  ENOTFOUND: { message: 'unknown host name', remedy: 'server.host: 127.0.0.1' },
  EAI_AGAIN: { message: 'the host name cannot be looked up at the moment', remedy: 'server.host: 127.0.0.1' },
}

/** Listens on the address for a moment; returns the error if that fails. */
function tryToListen(host: string, port: number): Promise<NodeJS.ErrnoException | undefined> {
  return new Promise((settle) => {
    const server = createServer()
    server.once('error', (error) => settle(error))
    server.listen({ host, port, exclusive: true }, () => server.close(() => settle(undefined)))
  })
}

async function portTaken(config: Config, { command, clock }: CheckContext, signal: AbortSignal) {
  const { host, port } = config.server
  const place = `${host}:${port}`
  const own = await announced(config)
  const elsewhere = `${command} serve --port 0`
  if (own?.origin !== originOf(config.server)) {
    const isOther = await isGateway(originOf(config.server), signal)
    const who = isOther ? 'a Toolway gateway with another state folder' : 'another program'
    return problem(`${place} is in use by ${who}`, `lsof -nP -iTCP:${port} -sTCP:LISTEN   # shows it; or: ${elsewhere}`)
  }
  const who = `Toolway ${own.version} (process ${own.pid})`
  if (own.version !== version)
    return warning(`${place} is served by ${who}; this command is ${version}`, `kill ${own.pid}; ${command} serve`)
  try {
    const { get } = await runningGateway(config, signal, own.origin)
    return ourFinding(await get<Overview>('overview'), `${place} is served by ${who}`, command, clock)
  } catch (thrown) {
    signal.throwIfAborted()
    return problem(`${place} is in use by ${who}, which does not answer: ${(thrown as Error).message}`, elsewhere)
  }
}

function ourFinding(overview: Overview, is: string, command: string, clock: Clock): CheckFinding {
  const { servers, unhealthy = 0, tools, startedAt, reload } = overview
  if (reload?.lastError) {
    const message = `${is}, but the current configuration could not be applied: ${reload.lastError}`
    return warning(message, `${command} validate`)
  }
  const known = Object.values(servers).reduce((sum, number) => sum + number, 0)
  const up = `${is}, up for ${span(clock.now() - startedAt)}: ${pluralize(known, 'server')}${unhealthy > 0 ? ` (${unhealthy} not healthy)` : ''}, ${pluralize(tools, 'tool')}`
  return unhealthy > 0 ? warning(up, `${command} servers`) : ok(up)
}
