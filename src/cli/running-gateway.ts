import { rmSync, writeFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { isIPv6 } from 'node:net'
import { join } from 'node:path'
import type * as contract from '../admin/contract.ts'
import type { Config } from '../config/schema.ts'
import type { Served, View } from '../core/access.ts'
import type { Caller } from '../core/call.ts'
import type { Clock } from '../core/clock.ts'
import { pause } from '../core/deadline.ts'
import { type ErrorCode, errorKinds, ServerError, ToolwayError } from '../core/errors.ts'
import type { ResultBody } from '../core/result.ts'
import { isSilent, type ServerSummary, type SourceStatus } from '../core/source-status.ts'
import { Json } from '../json/json.ts'
import { jsonValue, parseJson } from '../json/parse-json.ts'
import { hasOwnerEnded } from '../lib/files.ts'
import type { Why } from '../policy/explanation.ts'
import type { Gateway } from '../runtime/gateway-api.ts'
import { version } from '../runtime/package-paths.ts'
import { keptToken } from '../stores/secret-file.ts'
import type { GatewayAddressOptions } from './command-table.ts'
import { CommandError, createOutput, exit, type Output, type Shell, shortPath, UsageError } from './kit.ts'
import { load } from './load.ts'

export class NoGateway extends CommandError {
  constructor(message: string) {
    super(message, { code: 'NO_GATEWAY', exitCode: exit.unavailable })
  }
}

/** A failure that the gateway reports, with its own code and message. */
function reportedError({ code, message, data, ...details }: contract.FailureView): Error {
  const [, rpc] = /^rpc (-?\d+)$/.exec(code) ?? []
  if (rpc !== undefined) return new ServerError(Json.of({ code: Number(rpc), message, data }))
  if (Object.hasOwn(errorKinds, code)) return new ToolwayError(code as ErrorCode, message, details)
  return new CommandError(message, { code, exitCode: exit.refused })
}

const usualMs = 10_000
/** For requests whose time the gateway limits. */
const maxMs = 2 ** 31 - 1
/** How long a command that can do without the running gateway waits for it. */
const briefMs = 2_000

const announcementIn = ({ stores }: Config): string => join(stores.path, 'gateway.json')

/** Says in the state folder where this gateway listens, for as long as it does. */
export function announce(config: Config, url: string): Disposable {
  const file = announcementIn(config)
  writeFileSync(file, JSON.stringify({ origin: new URL(url).origin, pid: process.pid, version }), { mode: 0o600 })
  return { [Symbol.dispose]: () => rmSync(file, { force: true }) }
}

/** The gateway that uses this state folder; undefined if none is running. */
export async function announced(config: Config) {
  const file = announcementIn(config)
  const text = await readFile(file, 'utf8').catch(() => '')
  const found = parseJson(text) as { origin: string; pid: number; version: string } | undefined
  return found && (await hasOwnerEnded(found.pid, file)) ? undefined : found
}

export type RunningGateway = Awaited<ReturnType<typeof runningGateway>>

/** The running gateway that a command's options mean: that of the state folder, unless they name another address. */
export async function findRunningGateway(shell: Shell, options: GatewayAddressOptions): Promise<RunningGateway> {
  const { config } = await load(shell, options)
  const { host = config.server.host, port = config.server.port } = options
  const isNamed = options.host !== undefined || options.port !== undefined
  const own = isNamed ? undefined : await announced(config)
  if (own) noteAsked(shell, own.origin)
  else if (!isNamed) await noteForeign(shell, config)
  const configured = { ...config, server: { ...config.server, host, port } }
  return runningGateway(configured, shell.interrupted, own?.origin)
}

export interface OfflineOptions {
  readonly agent?: string
  readonly offline?: boolean
}

/** The gateway that uses this state folder, if it answers soon and in this version. A note says so, or why not. */
export async function askRunning(shell: Shell, config: Config, { agent, offline }: OfflineOptions) {
  if (offline) return undefined
  const own = await announced(config)
  if (!own) return noteForeign(shell, config)
  const refuse = (why: string) => {
    shell.interrupted.throwIfAborted()
    createOutput(shell).warn(`Not asking the running gateway: ${why}`)
    return undefined
  }
  if (own.version !== version) return refuse(`${own.origin} is Toolway ${own.version}, this command is ${version}.`)
  try {
    const gateway = await runningGateway(config, shell.interrupted, own.origin, agent)
    const session = await gateway.get<contract.SessionView>('session', briefMs)
    if (!session.admin) return refuse(`${own.origin} gives no admin rights to this command (auth.token).`)
    noteAsked(shell, own.origin, '; --offline does without it')
    return { ...gateway, session }
  } catch (thrown) {
    return refuse((thrown as Error).message)
  }
}

function noteAsked(shell: Shell, origin: string, more = ''): void {
  const { note, paintNote } = createOutput(shell)
  note(paintNote('dim', `Asking the gateway at ${origin}${more}`))
}

/** Notes that a gateway with another state folder listens on the configured port. */
async function noteForeign(shell: Shell, { server, stores }: Config): Promise<undefined> {
  const origin = originOf(server)
  if (server.port === 0 || !(await isGateway(origin, shell.interrupted))) return
  const folder = shortPath(stores.path, shell)
  createOutput(shell).warn(`The gateway at ${origin} uses another state folder than this command (${folder}).`)
}

/** Whether a gateway listens there. It gets no token. */
export async function isGateway(origin: string, interrupted: AbortSignal): Promise<boolean> {
  const signal = AbortSignal.any([interrupted, AbortSignal.timeout(briefMs)])
  const ask = async () => (await fetch(`${origin}/admin/api/openapi.json`, { signal })).text()
  return (await ask().catch(() => '')).includes('"title":"Toolway admin API"')
}

/** A gateway that is running in another process. */
export async function runningGateway(
  config: Config,
  signal: AbortSignal,
  origin = originOf(config.server),
  agent = '',
) {
  if (origin.endsWith(':0'))
    throw new UsageError('No gateway uses this state folder, and server.port is 0.', 'Use --port to name a gateway.')
  const { auth, stores } = config
  const token = auth.token === 'generated' ? await keptToken(stores.common) : auth.token
  const headers = {
    'content-type': 'application/json',
    ...(token !== 'none' && { authorization: `Bearer ${token}` }),
    ...(agent !== '' && { 'toolway-agent': agent }),
  }
  /** Calls the admin API: with a body, posts it. Throws NoGateway if the gateway is not running. */
  const ask = async (path: string, body?: string, limitMs = usualMs): Promise<Json> => {
    const limited = AbortSignal.any([signal, AbortSignal.timeout(limitMs)])
    const method = body === undefined ? 'GET' : 'POST'
    // Redirects are not followed: a gateway never sends any, and the target must not get our token.
    const options = { method, headers, body, signal: limited, headersTimeout: 0, bodyTimeout: 0 } as const
    const send = async () => {
      // Imported when needed: `serve` loads this file, too.
      const { request } = await import('undici')
      const { statusCode, body } = await request(`${origin}/admin/api/${path}`, options)
      const text = await body.text()
      return statusCode < 300 ? Json.parse(text) : jsonValue(text)
    }
    const answer = await send().catch((thrown: unknown) => {
      signal.throwIfAborted()
      if (!(thrown instanceof SyntaxError)) throw unreachable(origin, thrown as Error, limitMs)
    })
    if (answer instanceof Json) return answer
    const { error } = (answer ?? {}) as Partial<contract.AdminError>
    if (typeof error?.code === 'string' && typeof error.message === 'string') throw reportedError(error)
    throw new NoGateway(`${origin} responded, but it is not a Toolway gateway.`)
  }
  return {
    url: origin,
    ask,
    get: async <Body>(path: string, limitMs?: number): Promise<Body> =>
      (await ask(path, undefined, limitMs)).value as Body,
  }
}

export type CommandView = Pick<View, 'list' | 'ready' | 'refusal' | 'resolve' | 'servers' | 'shown' | 'started'>

/** What a command asks: a gateway in this process, or the running one. */
export interface CommandGateway
  extends Pick<Gateway, 'handle' | 'localAs' | 'onChange' | 'refresh' | 'servers' | 'token' | 'why'>,
    AsyncDisposable {
  view(caller: Caller): CommandView
}

/** The running gateway for a command; undefined if the command has to do without it. */
export async function findForCommand(
  shell: Shell,
  config: Config,
  { wait, ...options }: OfflineOptions & { readonly wait: number },
): Promise<CommandGateway | undefined> {
  const running = await askRunning(shell, config, options)
  if (!running) return undefined
  const { session, ask, get } = running
  let servers: readonly ServerSummary[] = []
  let found: contract.AgentTools | undefined
  /** The name under which the tool to call is served. */
  let name = ''

  const fetchTools = async (server = '') => {
    const query = new URLSearchParams({ server, timeoutMs: String(wait) })
    found = await get<contract.AgentTools>(`agents/tools?${query}`, wait + 10_000)
  }
  const view: CommandView = {
    ready: () => fetchTools(),
    started: fetchTools,
    list: () => (found?.all ?? []) as object as readonly Served[],
    shown: (mode = found?.expose ?? 'both') => (found?.shown[mode] ?? []) as object as readonly Served[],
    servers: () => (found?.servers ?? []) as object as readonly ServerSummary[],
    refusal: () => (found?.refusal ? (reportedError(found.refusal) as ToolwayError) : undefined),
    async resolve(_, spelling) {
      const tool = await get<contract.ToolDetail>(`tools/${encodeURIComponent(spelling)}`, maxMs)
      name = tool.name
      // What the scanner finds in it may depend on the other tools.
      if (tool.flags.length > 0) await fetchTools()
      const { server, definition, verbatim, override } = tool
      const entry = { kind: 'tool', server, name: tool.tool, definition, verbatim, ...(override && { override }) }
      return { name, definition, entry } as Served
    },
  }
  return {
    token: 'as configured',
    view: () => view,
    localAs: () => ({ ...session, session: 'local', capabilities: {} }),
    servers: () => servers,
    onChange: () => ({ [Symbol.dispose]() {} }),
    async refresh() {
      const fetch = async () => (await get<readonly contract.ServerView[]>('servers')).map(summaryOf)
      servers = await fetch()
      if (!servers.some(({ status }) => isSilent(status.health))) return
      await ask('refresh', '{}', maxMs)
      servers = await fetch()
    },
    async why(agent, tool, { authenticated = true } = {}) {
      const query = new URLSearchParams({ agent, tool, anonymous: authenticated ? '' : 'true' })
      const { considered, ...why } = await get<contract.WhyView>(`why?${query}`)
      return { ...why, serverExists: true, considered: considered.map(({ text: _, ...step }) => step) } as object as Why
    },
    async handle({ input, timeoutMs }) {
      const limit = timeoutMs === undefined ? '' : `,"timeoutMs":${timeoutMs}`
      const body = `{"arguments":${input.arguments.bytes}${limit}}`
      const path = `tools/${encodeURIComponent(name)}/call`
      const answer = await ask(path, body, maxMs).catch((thrown: unknown) => {
        if (!(thrown instanceof NoGateway)) throw thrown
        throw new ToolwayError('OUTCOME_UNKNOWN', `The answer was lost, so the tool may have run: ${thrown.message}`)
      })
      const { error, result } = answer.value as contract.TryResult
      if (error) throw reportedError({ ...error, message: error.message.replaceAll('timeoutMs', '--timeout') })
      return { body: answer.member('result') as Json<ResultBody>, isError: result?.isError === true }
    },
    async [Symbol.asyncDispose]() {},
  }
}

/** A server as its own gateway describes it. */
function summaryOf({ name, tools, process: _, calls: __, paused: ___, ...view }: contract.ServerView): ServerSummary {
  const known = Object.entries(view).filter(([, value]) => value !== null)
  return { name, tools, status: Object.fromEntries(known) as object as SourceStatus }
}

/** Fetches again at an interval, until interrupted. If the gateway disappears, keeps trying: it may be restarting. */
export async function* poll<T>(
  fetch: () => Promise<T>,
  everyMs: number,
  { shell: { interrupted }, output, clock }: { shell: Shell; output: Output; clock: Clock },
): AsyncGenerator<T> {
  let latest = await fetch()
  while (!interrupted.aborted) {
    yield latest
    await pause(clock, everyMs, interrupted).catch(() => {})
    if (interrupted.aborted) return
    latest = await fetch().catch((thrown: unknown) => {
      if (interrupted.aborted) return latest
      if (!(thrown instanceof NoGateway)) throw thrown
      output.note(`${thrown.message} Retrying.`)
      return latest
    })
  }
}

/** Polls, and yields each item that the answer before did not have. `identify` says which items are the same. */
export async function* pollNew<T>(
  fetch: () => Promise<readonly T[]>,
  identify: (item: T) => string,
  everyMs: number,
  context: Parameters<typeof poll>[2],
): AsyncGenerator<T> {
  let known: ReadonlySet<string> = new Set()
  for await (const items of poll(fetch, everyMs, context)) {
    yield* items.filter((item) => !known.has(identify(item)))
    known = new Set(items.map(identify))
  }
}

/** The address to connect to. A wildcard address cannot be connected to, so use loopback, which it includes. */
export function originOf({ host, port }: Config['server']): string {
  const reachable = { '0.0.0.0': '127.0.0.1', '::': '::1' }[host] ?? host
  return `http://${isIPv6(reachable) ? `[${reachable}]` : reachable}:${port}`
}

function unreachable(origin: string, error: NodeJS.ErrnoException, limitMs: number): NoGateway {
  if (error.name === 'TimeoutError')
    return new NoGateway(`${origin} did not answer within ${limitMs / 1000} s (a fixed limit).`)
  const reason = error.code === 'ECONNREFUSED' ? 'nothing is listening there' : error.message
  return new NoGateway(`No gateway is running at ${origin}: ${reason}.`)
}
