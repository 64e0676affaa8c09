import { once } from 'node:events'
import { readdir, rm, stat } from 'node:fs/promises'
import { getCompileCacheDir } from 'node:module'
import { basename, dirname, join } from 'node:path'
import { withoutBrackets } from '../../config/schema/server.ts'
import type { Config } from '../../config/schema.ts'
import { refuseUnauthenticated } from '../../config/warnings.ts'
import { systemClock } from '../../core/clock.ts'
import { pluralize } from '../../lib/message-text.ts'
import type { Gateway } from '../../runtime/gateway-api.ts'
import { version } from '../../runtime/package-paths.ts'
import { currentWorker } from '../../runtime/workers/worker.ts'
import type { OptionsOf } from '../command-table.ts'
import { createOutput, type ExitCode, exit, type Output, type Paint, relativeTo, type Shell } from '../kit.ts'
import { adjusted, load, openLog } from '../load.ts'
import { limitMemory } from '../memory.ts'
import { openWatching } from '../open.ts'
import { announce } from '../running-gateway.ts'

type ServeOptions = OptionsOf<'serve'>

/** Serves over HTTP until interrupted. */
export async function serve(shell: Shell, options: ServeOptions): Promise<ExitCode | undefined> {
  const worker = currentWorker(shell.env)
  if (!worker && (options.workers ?? 1) > 1) return serveWithWorkers(shell, options)
  // Loading takes seconds on a busy machine, and the primary process may have exited in the meantime.
  if (worker?.interrupted.aborted) return exit.failed
  await using gateway = await openWatching(shell, options, (config) => listeningOn(config, options), {
    print: (text) => void shell.stdout.write(text),
    shared: worker,
  })
  // A worker may listen only when the primary process allows it. Stop waiting if the primary process exits.
  const listening = gateway.listen()
  const server = await (worker ? Promise.race([listening, worker.gone]) : listening)
  if (server === undefined) return exit.failed
  const { url, port } = server
  const facts: StartFacts = { port, token: gateway.token ?? null, banner: bannerFacts(gateway, url, shell) }
  using _announced = worker ? undefined : announce(gateway.loaded.config, url)
  if (worker) worker.listening(facts)
  else {
    printStart(shell, options, facts)
    void removeOldCompiled()
  }
  // Only now: it sets flags of V8, and code that was compiled for other flags, such as that of Node itself, is not used.
  using _memory = limitMemory(systemClock, options.maxMemory && options.maxMemory / (worker?.identity.of ?? 1))
  const interrupted = worker ? AbortSignal.any([worker.interrupted, shell.interrupted]) : shell.interrupted
  await aborted(worker ? AbortSignal.any([worker.replaced, interrupted]) : interrupted)
  if (!worker) printStopping(shell, options)
  else if (!interrupted.aborted) await Promise.race([server.retire(leaveMs), aborted(interrupted)])
}

async function aborted(signal: AbortSignal): Promise<void> {
  if (!signal.aborted) await once(signal, 'abort')
}

async function serveWithWorkers(shell: Shell, options: ServeOptions): Promise<ExitCode> {
  const loaded = adjusted(await load(shell, options), (config) => listeningOn(config, options))
  refuseUnauthenticated(loaded)
  const { runWorkers } = await import('../../runtime/workers/primary.ts')
  const { shutdownGrace } = loaded.config.server
  shell.interrupted.addEventListener('abort', () => printStopping(shell, options), { once: true })
  using open = new DisposableStack()
  const code = await runWorkers({
    workers: options.workers ?? 1,
    interrupted: shell.interrupted,
    stopTimeoutMs: shutdownGrace + killAfterMs,
    replaceTimeoutMs: leaveMs + shutdownGrace + shutdownGrace + killAfterMs,
    listening(facts) {
      open.use(announce(loaded.config, (facts as StartFacts).banner.url))
      printStart(shell, options, facts as StartFacts)
    },
    clock: systemClock,
    log: openLog(shell, options.log ?? loaded.config.telemetry.log),
  })
  return code as ExitCode
}

/** How long a replaced worker still accepts requests on open connections, while its clients are told to reconnect. */
const leaveMs = 2_000

/** Servers that have not exited after this time are killed. */
const killAfterMs = 15_000

/** The details printed at startup. A worker sends them to the primary process. */
interface StartFacts {
  readonly port: number
  readonly token: string | null
  readonly banner: ReturnType<typeof bannerFacts>
}

function printStart(shell: Shell, { json }: ServeOptions, { port, token, banner: facts }: StartFacts): void {
  const output = createOutput(shell, json)
  warnOfRoot(output)
  if (json) shell.stdout.write(JSON.stringify({ event: 'listening', url: facts.url, port, token }) + '\n')
  else output.note(banner(facts, output.paintNote))
}

function printStopping(shell: Shell, { json }: ServeOptions): void {
  const output = createOutput(shell, json)
  if (!json) output.note(output.paintNote('dim', 'Stopping… press Ctrl+C again to quit now.'))
}

function listeningOn(config: Config, options: ServeOptions): Config {
  const { host = config.server.host, port = config.server.port } = options
  return { ...config, server: { ...config.server, host: withoutBrackets(host), port } }
}

function bannerFacts({ loaded, token, view, local, servers }: Gateway, url: string, { command, cwd, stderr }: Shell) {
  const tokenGenerated = loaded.config.auth.token === 'generated'
  return {
    version,
    url,
    servers: Object.values(loaded.config.mcpServers).filter(({ disabled }) => !disabled).length,
    nativeTools: servers().find(({ name }) => name === 'native')?.tools ?? 0,
    // As listed for clients: `describe_tools` is listed only in code mode.
    metaTools: view(local).shown('meta').length,
    // Keep a token that the operator configured out of service logs.
    token: token === undefined || tokenGenerated || stderr.isTTY ? token : 'YOUR_TOKEN',
    tokenGenerated,
    files: loaded.files.map(({ path }) => relativeTo(path, cwd)),
    command,
  }
}

const indented = (text: string): string => text.replace(/^/gm, '    ')

/** The text printed at startup: where the gateway listens, what it serves, and how to connect a client. */
export function banner(facts: ReturnType<typeof bannerFacts>, paint: Paint): string {
  const { url, token, files } = facts
  const { origin } = new URL(url)
  const bearer = token === undefined ? undefined : `Bearer ${token}`
  const source = facts.tokenGenerated ? 'generated once and reused at every start' : 'from your configuration'
  const servers = facts.servers > 0 ? pluralize(facts.servers, 'server') : 'no servers yet'
  const rows = {
    Endpoint: paint('cyan', url),
    Token: bearer ? `${token}  ${paint('dim', source)}` : paint('yellow', 'none: anyone who can connect has access'),
    // The dashboard reads its token from the URL fragment, which browsers do not send to the server.
    Dashboard: paint('cyan', bearer ? `${origin}/#token=${token}` : `${origin}/`),
    Serving: `${servers}, ${pluralize(facts.nativeTools, 'native tool')}, ${pluralize(facts.metaTools, 'meta-tool')}`,
    Config: files.length > 0 ? files.join(', ') : `none, so defaults apply; \`${facts.command} init\` writes one`,
  }
  const header = bearer ? ` --header "Authorization: ${bearer}"` : ''
  const toolway = { type: 'http', url, headers: bearer ? { Authorization: bearer } : undefined }
  return [
    '',
    `  ${paint('bold', 'Toolway')} ${paint('dim', facts.version)}`,
    '',
    ...Object.entries(rows).map(([title, value]) => `  ${paint('dim', title.padEnd(10))}${value}`),
    '',
    `  ${paint('bold', 'Claude Code')}`,
    '',
    indented(`claude mcp add --transport http toolway ${url}${header}`),
    '',
    `  ${paint('bold', 'Clients with a JSON file')} ${paint('dim', '(Cursor and others; VS Code calls the outer key "servers")')}`,
    '',
    indented(JSON.stringify({ mcpServers: { toolway } }, undefined, 2)),
    '',
    `  ${paint('dim', 'Press Ctrl+C to stop.')}`,
    '',
  ].join('\n')
}

const monthMs = 30 * 86_400_000

/** Removes other Node versions' compile caches that have not changed for a month. */
export async function removeOldCompiled(present = getCompileCacheDir(), now = Date.now()): Promise<void> {
  if (present === undefined) return
  const folder = dirname(present)
  // Delete nothing in other folders: NODE_COMPILE_CACHE may name a folder that other programs also use.
  if (basename(folder) !== 'compiled' || basename(dirname(folder)) !== 'toolway') return
  for (const name of await readdir(folder).catch(() => [])) {
    const other = join(folder, name)
    const facts = other === present ? undefined : await stat(other).catch(() => undefined)
    if (facts && now - facts.mtimeMs > monthMs) await rm(other, { recursive: true, force: true }).catch(() => {})
  }
}

/** Warns if Toolway is running as root, because a server that misbehaves could then do anything. */
export function warnOfRoot(output: Output, uid = process.getuid?.()): void {
  if (uid !== 0 || output.json) return
  output.warn(
    'Warning: Toolway is running as root, and so is every server that it starts. Run it as another user: ' +
      '`User=` in a systemd unit, `--user 10001:10001` or `runAsUser` for a container.',
  )
}

/** Serves one client over stdin and stdout until it disconnects. Only protocol messages go to stdout. */
export async function stdio(shell: Shell, options: OptionsOf<'stdio'>): Promise<void> {
  warnOfRoot(createOutput(shell, options.json))
  await using gateway = await openWatching(shell, options)
  using _memory = limitMemory(systemClock, options.maxMemory)
  if (shell.interrupted.aborted) return
  const { agent, expose, endpoint } = options
  const served = gateway.stdio(shell.stdin, shell.stdout, { agent, expose, endpoint })
  await Promise.race([served, once(shell.interrupted, 'abort')])
}
