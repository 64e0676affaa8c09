import { randomUUID } from 'node:crypto'
import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { visible } from '../catalog/scan/visible.ts'
import type { Config, ServerConfig } from '../config/schema.ts'
import type { Clock } from '../core/clock.ts'
import { deadline } from '../core/deadline.ts'
import type { Definition } from '../core/entry.ts'
import { ServerError, ToolwayError } from '../core/errors.ts'
import type { Isolation } from '../core/executor.ts'
import type { Log } from '../core/log.ts'
import { schemaProblem } from '../policy/arguments/validate.ts'
import { PluginsRefused } from '../tools/plugins/index.ts'
import { type Connector, createConnector } from '../upstream/connection/connect.ts'
import { createOrphanReaper, type OrphanReaper } from '../upstream/connection/orphan-reaper.ts'
import { fetchLists } from '../upstream/listing/fetch-lists.ts'
import { statusOf } from '../upstream/transports/transport-errors.ts'
import { openExecutor } from './engines.ts'
import { openPlugins } from './local-sources.ts'
import type { OAuth } from './oauth-sign-in.ts'
import { version } from './package-paths.ts'

/** What was found out about a server by trying it once, apart from any gateway. */
export interface ProbeResult {
  /** How it was reached in the end. */
  readonly transport: ServerConfig['transport']
  /** What each step took, in milliseconds; absent for those it did not come to. */
  readonly startMs?: number
  readonly handshakeMs?: number
  readonly listMs?: number
  readonly era?: 'legacy' | 'modern'
  readonly protocolVersion?: string
  /** Its own name and version. */
  readonly calls?: string
  /** The names of its tools. */
  readonly tools?: readonly string[]
  /** Those of them that it marks with readOnlyHint. */
  readonly hintedReads?: readonly string[]
  /** How many other things it offers. */
  readonly others?: number
  /** Lists that it has and could not give. */
  readonly missing?: readonly string[]
  /** What is odd about it, as the gateway would log it. */
  readonly remarks: readonly string[]
  /** The last lines that it wrote beside the protocol. */
  readonly stderr: readonly string[]
  readonly stdout: readonly string[]
  readonly failure?: ProbeFailure
}

export interface ProbeFailure {
  readonly message: string
  /** What the system or the network calls it: ENOENT, ECONNREFUSED, CERT_HAS_EXPIRED. */
  readonly code?: string
  /** The HTTP status that it was refused with. */
  readonly status?: number
  readonly timedOut: boolean
  /** Why somebody has to sign in, where that is all that is missing. */
  readonly signIn?: string
}

export interface ServerProber extends AsyncDisposable {
  /** Never rejects, unless the signal is aborted: what goes wrong is what it is about. */
  probe(name: string, config: ServerConfig, withinMs: number, signal: AbortSignal): Promise<ProbeResult>
}

export interface ServerProberOptions {
  /** Takes secrets out of what servers write and say. */
  redact(text: string): string
  /** Where tokens come from, for servers that want OAuth. */
  readonly oauth?: OAuth | undefined
  readonly clock: Clock
  readonly log: Log
}

const hasReadOnlyHint = ({ annotations }: Definition): boolean =>
  (annotations as { readonly readOnlyHint?: unknown } | undefined)?.readOnlyHint === true

const identity = { name: 'toolway', version }
const maxLines = 50

/** Tries servers, and leaves nothing of them behind: no process, no file. */
export function createServerProber({ redact, oauth, clock, log }: ServerProberOptions): ServerProber {
  // Not where the gateway keeps its own: that may be what is wrong.
  const folder = join(tmpdir(), `toolway-examiner-${randomUUID()}`)
  const orphanReaper = createOrphanReaper({ folder, log, clock })
  return {
    async probe(name, config, withinMs, signal) {
      const heard = listener(log, redact)
      const start = stopwatch(orphanReaper, () => connect.stderr?.().length ?? 0)
      const connect: Connector = createConnector({
        name,
        config,
        identity,
        orphanReaper: start.orphanReaper,
        redact,
        oauth,
        clock,
        log: heard.log,
      })
      let found: Partial<ProbeResult> = {}
      const unusable: string[] = []
      using limit = deadline(clock, withinMs, () => new Error(`no answer within ${withinMs / 1000} s`), signal)
      const begun = performance.now()
      try {
        const open = await connect({ capabilities: {}, owned: true }, limit.signal)
        await using connection = open.connection
        const { era, protocolVersion, serverInfo } = open.handshake
        const greeted = performance.now()
        const calls = redact([serverInfo.name, serverInfo.version].filter((part) => typeof part === 'string').join(' '))
        const handshakeMs = greeted - (start.startedAt() ?? begun)
        found = { handshakeMs, era, protocolVersion, calls, transport: connection.transport.kind }
        const offer = await fetchLists(open, { server: name, capabilities: {}, log: heard.log, signal: limit.signal })
        const { tools, resources, templates, prompts, failed: missing } = offer
        found = {
          ...found,
          listMs: performance.now() - greeted,
          tools: tools.map((tool) => String(tool.name)),
          hintedReads: tools.filter(hasReadOnlyHint).map((tool) => String(tool.name)),
          others: resources.length + templates.length + prompts.length,
          missing,
        }
        for (const { name: tool, inputSchema = {} } of tools) {
          const reason = await schemaProblem(inputSchema)
          if (reason !== undefined)
            unusable.push(redact(`its tool ${visible(String(tool))} cannot be used: ${reason} (input schema)`))
        }
      } catch (thrown) {
        signal.throwIfAborted()
        found = { ...found, failure: failureOf(thrown, limit.signal.aborted, redact) }
      }
      const startMs = start.startMs()
      return {
        transport: config.transport,
        ...found,
        ...(startMs !== undefined && { startMs }),
        remarks: [...heard.remarks, ...unusable],
        stderr: (connect.stderr?.() ?? []).slice(start.linesBefore()),
        stdout: heard.stdout,
      }
    },
    async [Symbol.asyncDispose]() {
      await orphanReaper[Symbol.asyncDispose]()
      await rm(folder, { recursive: true, force: true })
    },
  }
}

/** What is wrong with plugins, found out by loading them as a gateway does; a sentence each. */
export async function probePlugins(
  paths: readonly string[],
  context: Pick<ServerProberOptions, 'clock' | 'log'>,
): Promise<readonly string[]> {
  try {
    await using _plugins = await openPlugins(paths, context)
    return []
  } catch (thrown) {
    if (thrown instanceof PluginsRefused) return thrown.problems
    throw thrown
  }
}

/** Which programs of agents can be run here, found out by running some. */
export async function probeSandbox(
  config: Config['sandbox'],
  context: Pick<ServerProberOptions, 'clock' | 'log'>,
): Promise<Isolation> {
  await using executor = openExecutor(config, context)
  return await executor.probe()
}

/** Times the last start of a process: one that cannot bear to be probed is started twice, and says everything twice. */
function stopwatch(orphanReaper: OrphanReaper, lines: () => number) {
  let last: { readonly begun: number; readonly started: number } | undefined
  let linesBefore = 0
  return {
    startMs: () => last && last.started - last.begun,
    startedAt: () => last?.started,
    // Who has said more than is kept has nothing left from before.
    linesBefore: () => (lines() > linesBefore ? linesBefore : 0),
    orphanReaper: {
      ...orphanReaper,
      enrol() {
        const registration = orphanReaper.register()
        const begun = performance.now()
        linesBefore = lines()
        return {
          ...registration,
          started(pid: number) {
            last = { begun, started: performance.now() }
            registration.started(pid)
          },
        }
      },
    },
  }
}

/** A log that keeps what is odd about the server, and what it wrote where only messages belong. */
function listener(log: Log, redact: (text: string) => string) {
  const remarks: string[] = []
  const stdout: string[] = []
  const keep = (lines: string[], line: string) => {
    if (lines.length < maxLines) lines.push(line)
  }
  const own: Log = {
    debug(facts, message) {
      const { stream, line } = facts as { stream?: string; line?: string }
      if (stream === 'stdout' && line !== undefined) keep(stdout, line)
      log.debug(facts, message)
    },
    info: (facts, message) => log.info(facts, message),
    warn(facts, message) {
      const { reason, method } = facts as { reason?: string; method?: string }
      const about = [method, reason].filter((part) => part !== undefined).join(': ')
      keep(remarks, redact(about === '' ? message : `${message} (${about})`))
      log.warn(facts, message)
    },
    error: (facts, message) => log.error(facts, message),
  }
  return { log: own, remarks, stdout }
}

function failureOf(thrown: unknown, timedOut: boolean, redact: (text: string) => string): ProbeFailure {
  const code = codeOf(thrown)
  const status = statusOf(thrown)
  return {
    message: redact(sentenceOf(thrown)),
    ...(code !== undefined && { code }),
    ...(status !== undefined && { status }),
    timedOut,
    ...(needsSignIn(thrown) && { signIn: thrown.message }),
  }
}

const needsSignIn = (thrown: unknown): thrown is ToolwayError =>
  thrown instanceof ToolwayError && thrown.code === 'AUTH_REQUIRED'

function sentenceOf(thrown: unknown): string {
  if (!(thrown instanceof ServerError)) return thrown instanceof Error ? thrown.message : String(thrown)
  const { code, message } = thrown.error.value
  return `It answered with an error: ${message} (${code}).`
}

/** The first code in a chain of causes; of several attempts the first one's. */
function codeOf(thrown: unknown): string | undefined {
  for (let error = thrown, depth = 0; error instanceof Error && depth < 8; depth++) {
    if (error instanceof AggregateError) error = error.errors[0]
    const { code, cause } = error as NodeJS.ErrnoException & { cause?: unknown }
    // Our own codes say less than what is behind them.
    if (typeof code === 'string' && !(error instanceof ToolwayError)) return code
    error = cause
  }
  return undefined
}
