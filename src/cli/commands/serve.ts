import { once } from 'node:events'
import { readdir, rm, stat } from 'node:fs/promises'
import { getCompileCacheDir } from 'node:module'
import { basename, dirname, join } from 'node:path'
import type { Config } from '../../config/schema.ts'
import { refuseUnauthenticated } from '../../config/unauthenticated.ts'
import { systemClock } from '../../core/clock.ts'
import type { Gateway } from '../../runtime/gateway.ts'
import { version } from '../../runtime/package-paths.ts'
import { currentWorker } from '../../runtime/workers/worker.ts'
import { releaseWhenIdle } from '../idle-memory.ts'
import {
  commandName,
  createOutput,
  type ExitCode,
  exit,
  type Output,
  type Paint,
  relativeTo,
  type Shell,
} from '../kit.ts'
import { adjusted, type CommonOptions, load, openLog } from '../load.ts'

interface ServeOptions extends CommonOptions {
  readonly host?: string
  readonly port?: number
  readonly watch?: boolean
  readonly workers?: number
}

/** Serves over HTTP until interrupted. */
export async function serve(shell: Shell, options: ServeOptions): Promise<ExitCode> {
  const worker = currentWorker(shell.env)
  if (!worker && (options.workers ?? 1) > 1) return serveWithWorkers(shell, options)
  // Loaded lazily: the primary process only supervises workers and stays small.
  const { openWatching } = await import('../open.ts')
  // Loading takes seconds on a busy machine; the primary process may have exited since.
  if (worker?.stopped.aborted) return exit.failed
  await using gateway = await openWatching(shell, options, {
    change: (config) => listeningOn(config, options),
    print: (text) => void shell.stdout.write(text),
    shared: worker?.shared,
  })
  using _releasing = releaseWhenIdle(systemClock)
  // If the primary process is gone, nobody tells the worker whether it may listen.
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

/** Starts worker processes and supervises them. */
async function serveWithWorkers(shell: Shell, options: ServeOptions): Promise<ExitCode> {
  const loaded = adjusted(await load(shell, options), (config) => listeningOn(config, options))
  refuseUnauthenticated(loaded)
  const { runWorkers } = await import('../../runtime/workers/primary.ts')
  shell.interrupted.addEventListener('abort', () => tellOfEnd(shell, options), { once: true })
  const code = await runWorkers({
    workers: options.workers ?? 1,
    interrupted: shell.interrupted,
    stopTimeoutMs: loaded.config.server.shutdownGrace + killAfterMs,
    listening: (facts) => tell(shell, options, facts as Told),
    clock: systemClock,
    log: openLog(shell, loaded, options.log),
  })
  return code as ExitCode
}

/** Time for clients to use their open connections once more and be told to reconnect. */
const leaveMs = 2_000

/** Servers that do not exit are killed before this. */
const killAfterMs = 15_000

/** Facts printed at the start. */
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
  if (!json) output.note(output.paintNote('dim', 'Stopping… press Ctrl+C again to quit now.'))
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
    // Keep the operator's own token out of service logs.
    token: token === undefined || tokenGenerated || stderr.isTTY ? token : 'YOUR_TOKEN',
    tokenGenerated,
    files: loaded.files.map(({ path }) => relativeTo(path, cwd)),
    command: commandName(env),
  }
}

interface Banner {
  readonly version: string
  readonly url: string
  readonly servers: number
  readonly nativeTools: number
  readonly metaTools: number
  /** What clients must send, if anything. */
  readonly token: string | undefined
  readonly tokenGenerated: boolean
  /** The configuration files that were read, shortened for reading. */
  readonly files: readonly string[]
  /** What the configuration asks for and this version does not do yet. */
  /** How the user spells the command line. */
  readonly command: string
}

/** What `claude mcp add` wants to hear. */
const claudeCommand = (url: string, token: string | undefined): string =>
  `claude mcp add --transport http toolway ${url}` +
  (token === undefined ? '' : ` --header "Authorization: Bearer ${token}"`)

/** What stands behind the # never leaves the browser, which signs in with it. */
const dashboardLink = (url: string, token: string | undefined): string =>
  `${new URL(url).origin}/${token === undefined ? '' : `#token=${token}`}`

/** The entry that most clients read from a JSON file. */
const clientJson = (url: string, token: string | undefined): object => ({
  mcpServers: {
    toolway: { type: 'http', url, ...(token !== undefined && { headers: { Authorization: `Bearer ${token}` } }) },
  },
})

const count = (number: number, thing: string): string => `${number} ${thing}${number === 1 ? '' : 's'}`

const indented = (text: string): string => text.replace(/^/gm, '    ')

/** What `serve` says when it is up: where it is, what it serves, and how to point a client at it. */
export function banner(facts: Banner, paint: Paint): string {
  const { url, token } = facts
  const serving = [
    facts.servers > 0 ? count(facts.servers, 'server') : 'no servers yet',
    count(facts.nativeTools, 'native tool'),
    count(facts.metaTools, 'meta-tool'),
  ]
  const kept = facts.tokenGenerated ? 'generated once and kept between starts' : 'from your configuration'
  const rows: (readonly [string, string])[] = [
    ['Endpoint', paint('cyan', url)],
    [
      'Token',
      token === undefined ? paint('yellow', 'none: whoever reaches it may use it') : `${token}  ${paint('dim', kept)}`,
    ],
    ['Dashboard', paint('cyan', dashboardLink(url, token))],
    ['Serving', serving.join(', ')],
    [
      'Config',
      facts.files.length > 0 ? facts.files.join(', ') : `none, so defaults apply; \`${facts.command} init\` writes one`,
    ],
  ]
  return [
    '',
    `  ${paint('bold', 'Toolway')} ${paint('dim', facts.version)}`,
    '',
    ...rows.map(([title, value]) => `  ${paint('dim', title.padEnd(10))}${value}`),
    '',
    `  ${paint('bold', 'Claude Code')}`,
    '',
    indented(claudeCommand(url, token)),
    '',
    `  ${paint('bold', 'Clients with a JSON file')} ${paint('dim', '(Cursor and others; VS Code calls the outer key "servers")')}`,
    '',
    indented(JSON.stringify(clientJson(url, token), undefined, 2)),
    '',
    `  ${paint('dim', 'Ctrl+C stops it.')}`,
    '',
  ].join('\n')
}

const monthMs = 30 * 86_400_000

/** Removes compile caches of other Node versions that have not changed for a month. */
export async function removeOldCompiled(present = getCompileCacheDir(), now = Date.now()): Promise<void> {
  if (present === undefined) return
  const folder = dirname(present)
  // NODE_COMPILE_CACHE leads elsewhere, to what is not only ours.
  if (basename(folder) !== 'compiled' || basename(dirname(folder)) !== 'toolway') return
  for (const name of await readdir(folder).catch(() => [])) {
    const other = join(folder, name)
    const facts = other === present ? undefined : await stat(other).catch(() => undefined)
    if (facts && now - facts.mtimeMs > monthMs) await rm(other, { recursive: true, force: true }).catch(() => {})
  }
}

/** Servers run as the user who runs Toolway: as root, one that misbehaves can do anything. Not for programs to read. */
export function warnOfRoot(output: Output, uid = process.getuid?.()): void {
  if (uid !== 0 || output.json) return
  output.note(
    output.paintNote(
      'yellow',
      'Warning: Toolway runs as root, and so does every server that it starts. Run it as another user: ' +
        '`User=` in a systemd unit, `--user 10001:10001` or `runAsUser` for a container.',
    ),
  )
}

interface StdioOptions extends CommonOptions {
  readonly agent?: string
  readonly watch?: boolean
}

/** Serves one client over stdin and stdout until it disconnects. Only protocol messages go to stdout. */
export async function stdio(shell: Shell, options: StdioOptions): Promise<ExitCode> {
  warnOfRoot(createOutput(shell, options.json))
  const { openWatching } = await import('../open.ts')
  await using gateway = await openWatching(shell, options)
  using _releasing = releaseWhenIdle(systemClock)
  if (shell.interrupted.aborted) return exit.ok
  await Promise.race([gateway.stdio(shell.stdin, shell.stdout, options.agent), once(shell.interrupted, 'abort')])
  return exit.ok
}
