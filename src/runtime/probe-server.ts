import { randomUUID } from 'node:crypto'
import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { descriptorStore } from '../catalog/descriptor-store.ts'
import { visible } from '../catalog/scan/finding.ts'
import type { Config, ServerConfig } from '../config/schema.ts'
import type { Clock } from '../core/clock.ts'
import { deadline } from '../core/deadline.ts'
import type { Definition } from '../core/entry.ts'
import { ServerError, ToolwayError } from '../core/errors.ts'
import type { Isolation } from '../core/executor.ts'
import type { Log } from '../core/log.ts'
import type { ServerFinding } from '../core/source-status.ts'
import { toolOverrides } from '../core/tool-overrides.ts'
import { schemaProblem } from '../policy/arguments/validate.ts'
import { createOrphanReaper, type OrphanReaper } from '../process/orphan-reaper.ts'
import { PluginsRefused } from '../tools/plugins/index.ts'
import { type Connector, createConnector } from '../upstream/connection/connect.ts'
import { exceededFinding, findingsOfFailed, noKnownReads } from '../upstream/health/health.ts'
import { hidesEveryTool } from '../upstream/listing/definitions.ts'
import { fetchLists, type ServerLists } from '../upstream/listing/fetch-lists.ts'
import type { ListLimits } from '../upstream/listing/list-reader.ts'
import { overrideProblems } from '../upstream/listing/overrides.ts'
import { fingerprintOf } from '../upstream/listing/server-listing.ts'
import type { OutputLine } from '../upstream/transports/stderr.ts'
import { offersOAuth, statusOf } from '../upstream/transports/transport-errors.ts'
import { openExecutor } from './engines.ts'
import { openPlugins } from './local-sources.ts'
import type { OAuth } from './oauth-sign-in.ts'
import { identity } from './package-paths.ts'

/** The result of connecting to a server once, without a gateway. */
export interface ProbeResult {
  /** The transport that worked, or the last one tried. */
  readonly transport: ServerConfig['transport']
  /** Duration of each step in milliseconds. Absent if the step was not reached. */
  readonly startMs?: number | undefined
  readonly handshakeMs?: number
  readonly listMs?: number
  readonly era?: 'legacy' | 'modern'
  readonly protocolVersion?: string
  /** The name and version that the server reports. */
  readonly calls?: string
  readonly tools?: readonly string[]
  readonly lists?: Pick<ServerLists, 'tools' | 'resources' | 'templates' | 'prompts'>
  readonly hintedReads?: readonly string[]
  /** The number of resources, templates and prompts. */
  readonly others?: number
  /** Lists that the server declares but fails to return. */
  readonly missing?: readonly string[]
  /** What the gateway would shorten, leave out or refuse. */
  readonly findings?: readonly ServerFinding[]
  /** Warnings that the gateway would log. */
  readonly remarks: readonly string[]
  /** The last lines of output that are not protocol messages, from stderr and stdout. */
  readonly stderr: readonly string[]
  readonly stdout: readonly string[]
  readonly failure?: ProbeFailure
}

export interface ProbeFailure {
  readonly message: string
  /** A system error code, such as ENOENT, ECONNREFUSED, CERT_HAS_EXPIRED. */
  readonly code?: string | undefined
  readonly status?: number | undefined
  readonly timedOut: boolean
  /** Set if only a sign-in is missing; says why it is required. */
  readonly signIn?: string | undefined
  /** Whether the server requires a credential and says where to get one with OAuth. */
  readonly offersOAuth: boolean
}

export type ServerProber = ReturnType<typeof createServerProber>

export interface ServerProberOptions {
  redact(text: string): string
  readonly oauth?: Pick<OAuth, 'authorize'> | undefined
  readonly limits?: ListLimits | undefined
  readonly clock: Clock
  readonly log: Log
}

const hasReadOnlyHint = ({ annotations }: Definition): boolean =>
  (annotations as { readonly readOnlyHint?: unknown } | undefined)?.readOnlyHint === true

const maxLines = 50

/** Connects to servers for `toolway doctor`. Leaves no process or file behind. */
export function createServerProber({ redact, oauth, limits, clock, log }: ServerProberOptions) {
  // Do not use the state folder, which may be what is broken.
  const folder = join(tmpdir(), `toolway-probe-${randomUUID()}`)
  const orphanReaper = createOrphanReaper(folder, log, clock)
  return {
    /** Connects to a server once. Rejects only if `signal` is aborted. Failures are part of the result. */
    async probe(name: string, config: ServerConfig, withinMs: number, signal: AbortSignal): Promise<ProbeResult> {
      const recorder = recordLog(log, redact)
      const start = stopwatch(orphanReaper, () => connect.stderr?.() ?? [])
      const host = { redact, oauth, orphanReaper: start.orphanReaper }
      const connect: Connector = createConnector({ name, config, identity, host, clock, log: recorder.log })
      let found: Partial<ProbeResult> = {}
      const unusable: string[] = []
      using limit = deadline(clock, withinMs, () => new Error(`no answer within ${withinMs / 1000} s`), signal)
      const startedAt = performance.now()
      try {
        const open = await connect({ capabilities: {}, owned: true }, limit.signal)
        await using connection = open.connection
        const { era, protocolVersion, serverInfo, findings = [] } = open.handshake
        const initializedAt = performance.now()
        const calls = redact([serverInfo.name, serverInfo.version].filter((part) => typeof part === 'string').join(' '))
        const handshakeMs = initializedAt - (start.startedAt() ?? startedAt)
        found = { handshakeMs, era, protocolVersion, calls, transport: connection.transport.kind, findings }
        const request = { server: name, capabilities: {}, limits, log: recorder.log, signal: limit.signal }
        const lists = await fetchLists(open, request)
        const { tools, resources, templates, prompts, failed } = lists
        found = {
          ...found,
          listMs: performance.now() - initializedAt,
          lists: { tools, resources, templates, prompts },
          tools: tools.map((tool) => String(tool.name)),
          hintedReads: tools.filter(hasReadOnlyHint).map((tool) => String(tool.name)),
          others: resources.length + templates.length + prompts.length,
          missing: failed.map(({ method }) => method),
          findings: [...findings, ...lists.findings, ...findingsOfFailed(failed)],
        }
        for (const problem of await schemaProblems(tools)) unusable.push(redact(problem))
      } catch (thrown) {
        signal.throwIfAborted()
        const exceeded = exceededFinding(thrown)
        const findings = [...(found.findings ?? []), ...(exceeded ? [exceeded] : [])]
        found = { ...found, findings, failure: probeFailure(thrown, limit.signal.aborted, redact) }
      }
      return {
        transport: config.transport,
        ...found,
        startMs: start.startMs(),
        remarks: [...recorder.remarks, ...unusable],
        stderr: start.stderr().map(({ text }) => text),
        stdout: recorder.stdout,
      }
    },
    async [Symbol.asyncDispose](): Promise<void> {
      await orphanReaper[Symbol.asyncDispose]()
      await rm(folder, { recursive: true, force: true })
    },
  }
}

/** How many different schemas are compiled, which takes a few milliseconds each and delays the other checks. */
const maxProbedSchemas = 2_000

/** The tools whose input schema cannot be used, each with the reason. */
async function schemaProblems(tools: readonly Definition[]): Promise<readonly string[]> {
  const problems: string[] = []
  const compiled = new Map<string, string | undefined>()
  let unchecked = 0
  for (const { name, inputSchema = {} } of tools) {
    const text = JSON.stringify(inputSchema)
    const isNew = !compiled.has(text)
    if (isNew && compiled.size >= maxProbedSchemas) unchecked++
    else if (isNew) compiled.set(text, await schemaProblem(inputSchema))
    const reason = compiled.get(text)
    if (reason !== undefined && problems.length < maxLines)
      problems.push(`its tool ${visible(String(name))} cannot be used: ${reason} (input schema)`)
  }
  return unchecked === 0 ? problems : [...problems, `the input schemas of ${unchecked} tools were not checked`]
}

export async function probePlugins(
  paths: readonly string[],
  context: Parameters<typeof openPlugins>[1],
): Promise<readonly string[]> {
  try {
    await using _plugins = await openPlugins(paths, context)
    return []
  } catch (thrown) {
    if (thrown instanceof PluginsRefused) return thrown.problems
    throw thrown
  }
}

/** Runs test programs to find out what the sandbox supports on this machine. */
export async function probeSandbox(
  config: Config['sandbox'],
  context: Pick<ServerProberOptions, 'clock' | 'log'>,
): Promise<Isolation> {
  await using executor = openExecutor(config, context)
  return await executor.probe()
}

/**
 * Measures the last start of the process. A server that exits during protocol detection is started twice; `stderr`
 * returns only what the last process wrote.
 */
function stopwatch(orphanReaper: OrphanReaper, lines: () => readonly OutputLine[]) {
  let last: { readonly begun: number; readonly started: number } | undefined
  let lineBefore: OutputLine | undefined
  return {
    startMs: () => last && last.started - last.begun,
    startedAt: () => last?.started,
    stderr(): readonly OutputLine[] {
      const all = lines()
      // If that line has been dropped from the buffer, so have all earlier ones.
      return lineBefore ? all.slice(all.indexOf(lineBefore) + 1) : all
    },
    orphanReaper: {
      ...orphanReaper,
      register() {
        const registration = orphanReaper.register()
        const begun = performance.now()
        lineBefore = lines().at(-1)
        return {
          ...registration,
          started(pid: number) {
            last = { begun, started: performance.now() }
            registration.started(pid)
          },
        }
      },
    } satisfies OrphanReaper,
  }
}

/** A log that also collects warnings and those lines on stdout that are not protocol messages. */
function recordLog(log: Log, redact: (text: string) => string) {
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

function probeFailure(thrown: unknown, timedOut: boolean, redact: (text: string) => string): ProbeFailure {
  const needsSignIn = thrown instanceof ToolwayError && thrown.code === 'AUTH_REQUIRED'
  return {
    message: redact(failureSentence(thrown)),
    code: systemErrorCode(thrown),
    status: statusOf(thrown),
    timedOut,
    signIn: needsSignIn ? thrown.message : undefined,
    offersOAuth: offersOAuth(thrown),
  }
}

function failureSentence(thrown: unknown): string {
  if (!(thrown instanceof ServerError)) return thrown instanceof Error ? thrown.message : String(thrown)
  const { code, message } = thrown.error.value
  return `The server returned an error: ${message} (${code}).`
}

/** The first error code in a chain of causes. For an aggregate error, follows the first of its errors. */
function systemErrorCode(thrown: unknown): string | undefined {
  for (let error = thrown, depth = 0; error instanceof Error && depth < 8; depth++) {
    if (error instanceof AggregateError) error = error.errors[0]
    const { code, cause } = error as NodeJS.ErrnoException & { cause?: unknown }
    // Skip Toolway's own error codes, which are less specific than the codes of the underlying causes.
    if (typeof code === 'string' && !(error instanceof ToolwayError)) return code
    error = cause
  }
  return undefined
}

/**
 * Warnings about servers, given their tools as they were last listed: about read-only ones of whose tools none is known
 * to be read-only, and about overrides without effect.
 */
export async function listingWarnings({ mcpServers, stores }: Config): Promise<readonly string[]> {
  const store = descriptorStore(join(stores.path, 'catalog'))
  const warnings = Object.entries(mcpServers).map(async ([name, server]) => {
    // Without any of these settings, no server has known reads, which is a warning of the policy.
    const { readTools, trustAnnotations, tools } = server
    const hasOverrides = toolOverrides(tools).size > 0
    if (server.disabled || (readTools.length === 0 && !trustAnnotations && !hasOverrides)) return []
    const { tools: listed = [] } = (await store.load(name, fingerprintOf(server))) ?? {}
    const hidesAll = hidesEveryTool(server, listed)
    return [
      ...(hidesAll ? [`mcpServers.${name}.readOnly: ${noKnownReads(server)}`] : []),
      ...overrideProblems(name, tools, listed),
    ]
  })
  return (await Promise.all(warnings)).flat()
}
