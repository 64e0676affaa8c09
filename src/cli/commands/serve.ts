import { once } from 'node:events'
import type { Config } from '../../config/schema.ts'
import { refuseUnauthenticated } from '../../config/unauthenticated.ts'
import { systemClock } from '../../core/clock.ts'
import type { Gateway } from '../../runtime/gateway.ts'
import { version } from '../../runtime/package-paths.ts'
import { currentWorker } from '../../runtime/workers/worker.ts'
import { type Banner, banner } from '../banner.ts'
import { type ExitCode, exit } from '../exit.ts'
import { releaseWhenIdle } from '../idle-memory.ts'
import { adjusted, type CommonOptions, load } from '../load.ts'
import { removeOldCompiled } from '../old-compiled.ts'
import { openLog } from '../open-log.ts'
import { createOutput } from '../output.ts'
import { warnOfRoot } from '../root-warning.ts'
import { near, type Shell, spelling } from '../shell.ts'

export interface ServeOptions extends CommonOptions {
  readonly host?: string
  readonly port?: number
  readonly watch?: boolean
  readonly workers?: number
}

/** Serves over HTTP until it is told to stop. */
export async function serve(shell: Shell, options: ServeOptions): Promise<ExitCode> {
  const worker = currentWorker(shell.env)
  if (!worker && (options.workers ?? 1) > 1) return serveWithWorkers(shell, options)
  // Loaded by whoever serves: the one that only looks after workers stays small.
  const { openWatching } = await import('../open.ts')
  await using gateway = await openWatching(shell, options, {
    change: (config) => listeningOn(config, options),
    print: (text) => void shell.stdout.write(text),
    shared: worker?.shared,
  })
  using _releasing = releaseWhenIdle(systemClock)
  // A first process that is gone never says whether a worker may listen.
  const listening = gateway.listen()
  const door = await (worker ? Promise.race([listening, worker.gone]) : listening)
  if (door === undefined) return exit.failed
  const { url, port, retire } = door
  const facts: Told = { port, token: gateway.token ?? null, banner: factsOf(gateway, url, shell) }
  if (worker) worker.listening(facts)
  else tell(shell, options, facts)
  if (!worker) void removeOldCompiled()
  const stopped = worker ? AbortSignal.any([worker.stopped, shell.interrupted]) : shell.interrupted
  if (!stopped.aborted) await once(stopped, 'abort')
  if (!worker) tellOfEnd(shell, options)
  if (worker?.replaced) await retire(leaveMs)
  return exit.ok
}

/** Several processes that serve as one, and this one to look after them. */
async function serveWithWorkers(shell: Shell, options: ServeOptions): Promise<ExitCode> {
  const loaded = adjusted(await load(shell, options), (config) => listeningOn(config, options))
  refuseUnauthenticated(loaded)
  const { runWorkers } = await import('../../runtime/workers/primary.ts')
  shell.interrupted.addEventListener('abort', () => tellOfEnd(shell, options), { once: true })
  const code = await runWorkers({
    workers: options.workers ?? 1,
    interrupted: shell.interrupted,
    patienceMs: loaded.config.server.shutdownGrace + killAfterMs,
    listening: (facts) => tell(shell, options, facts as Told),
    clock: systemClock,
    log: openLog(shell, loaded, options.log),
  })
  return code as ExitCode
}

/** Whoever keeps a connection open uses it within this time, and is told to open another one. */
const leaveMs = 2_000

/** Servers that do not end by themselves are killed before that. */
const killAfterMs = 15_000

/** What whoever started it is told. */
interface Told {
  readonly port: number
  readonly token: string | null
  readonly banner: Banner
}

function tell(shell: Shell, { json }: ServeOptions, { port, token, banner: facts }: Told): void {
  const output = createOutput(shell, json)
  const { url } = facts
  warnOfRoot(output)
  if (json) shell.stdout.write(JSON.stringify({ event: 'listening', url, port, token }) + '\n')
  else output.note(banner(facts, output.paintNote))
}

function tellOfEnd(shell: Shell, { json }: ServeOptions): void {
  const output = createOutput(shell, json)
  if (!json) output.note(output.paintNote('dim', 'Stopping; once more to leave at once.'))
}

const listeningOn = (config: Config, { host, port }: ServeOptions): Config => ({
  ...config,
  server: { ...config.server, ...(host !== undefined && { host }), ...(port !== undefined && { port }) },
})

function factsOf({ loaded, token, view, local, servers }: Gateway, url: string, { cwd, env, stderr }: Shell): Banner {
  const tools = view(local).list('tool')
  const toolsOf = (source: string) => tools.filter(({ entry }) => entry.server === source).length
  const tokenGenerated = loaded.config.auth.token === 'generated'
  return {
    version,
    url,
    servers: Object.values(loaded.config.mcpServers).filter(({ disabled }) => !disabled).length,
    nativeTools: servers().find(({ name }) => name === 'native')?.tools ?? 0,
    metaTools: toolsOf('toolway'),
    // The operator's own token need not get into whatever collects the output of services.
    token: token === undefined || tokenGenerated || stderr.isTTY ? token : 'YOUR_TOKEN',
    tokenGenerated,
    files: loaded.files.map(({ path }) => near(path, cwd)),
    command: spelling(env),
  }
}
