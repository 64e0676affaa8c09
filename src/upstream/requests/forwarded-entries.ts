import { type Call, type Capabilities, type Handler, ownerKey, skillsExtension } from '../../core/call.ts'
import { deadline } from '../../core/deadline.ts'
import type { Definition, Entry, Kind } from '../../core/entry.ts'
import { ToolwayError } from '../../core/errors.ts'
import { fixedLimits } from '../../core/limits/fixed-limits.ts'
import type { Result, ResultBody } from '../../core/result.ts'
import { hasListedContent, skillFiles } from '../../core/skills.ts'
import type { Descriptors } from '../../core/stores.ts'
import { type ToolSelection, toolOverrides } from '../../core/tool-overrides.ts'
import { everySecond, notifyWaitingFor } from '../../core/waiting.ts'
import { Json } from '../../json/json.ts'
import { hasMoreValues, members } from '../../json/json-text.ts'
import { parseExactly } from '../../json/parse-json.ts'
import { asRecord } from '../../lib/is-record.ts'
import { quote } from '../../lib/message-text.ts'
import { matches } from '../../lib/wildcard.ts'
import { AmbiguousMember } from '../../wire/check-members.ts'
import { maxBlocks, maxResultValues, type ResultMessage } from '../../wire/message.ts'
import { paramHeaders } from '../../wire/param-headers.ts'
import type { InitializedConnection } from '../connection/handshake.ts'
import type { CallerUse } from '../connection/pooled-connection.ts'
import { repairedDefinition, traitsOf, visibleDefinition } from '../listing/definitions.ts'
import { withCommas } from '../listing/list-reader.ts'
import { overriddenEntry, overrideProblems } from '../listing/overrides.ts'
import type { UpstreamServerOptions } from '../server-options.ts'
import { LimitExceeded, unansweredError } from '../transports/transport-errors.ts'
import { encodeRequest, type RequestSpec } from './encode-request.ts'
import {
  askCaller,
  checkedInputRequests,
  resultTypeOf,
  sealedResult,
  understands,
  unsealedRest,
} from './input-required.ts'
import { mayHaveUris, servedResult, servedTaskResult, urisOfFolder, withServedUris } from './served-uris.ts'
import type { UpstreamSubscriptions } from './subscriptions.ts'
import { relayTask, resultOfTask, sealStartedTask, startedTaskId, taskLifetimeMs } from './tasks.ts'

/** What a server does for the calls of its entries. */
export interface ForwardingPort {
  /** Runs `sendRequest` on a connection for this call; implemented in `server.ts` (`#use`). */
  use(call: CallerUse & Call, sendRequest: ForwardedWork): Promise<ResultMessage>
  readonly subscriptions: UpstreamSubscriptions
  /** Called when a request was answered, with its duration. */
  answered(ms: number): void
  /** Called when a call failed. */
  failed(error: unknown): void
  /** Called when the server's listing has turned out not to be current. */
  outdated(): void
  /** Called if a call failed because the server's message exceeds a limit. */
  exceeded(limit: LimitExceeded, method: string, name: string): void
}

type ForwardedWork = (open: InitializedConnection) => Promise<ResultMessage>

/** A call, and the connection that it used: updates to a task arrive on the connection that started the task. */
interface UsedCall {
  readonly call: Call
  connection?: InitializedConnection
}

type Target = Pick<RequestSpec, 'method' | 'members' | 'rest' | 'name' | 'headers'>

const maxRounds = fixedLimits.inputRounds.value
/** How long Toolway waits until a server has cancelled a task whose caller has gone. */
const cancelWithinMs = 5_000

/** Makes the entries of a server's listing. Their `run` forwards calls to the server. */
export class EntryForwarder {
  #server: UpstreamServerOptions
  readonly #port: ForwardingPort
  /** The problems of overrides that have been logged. */
  readonly #logged = new Set<string>()

  constructor(server: UpstreamServerOptions, port: ForwardingPort) {
    this.#server = server
    this.#port = port
  }

  /** Changes which tools there are and what callers see of them, in entries that are made from now on. */
  selectTools(tools: ToolSelection): void {
    this.#server = { ...this.#server, config: { ...this.#server.config, tools } }
  }

  entries({ capabilities, exactSchemas, tools, resources, templates, prompts, skills = [] }: Descriptors): Entry[] {
    const { name: server, config, defaults } = this.#server
    const { subscriptions } = this.#port
    const { include, exclude } = config.tools
    const overrides = toolOverrides(config.tools)
    if (overrides.size > 0) this.#logProblems(overrideProblems(server, config.tools, tools))
    const listedNames = new Set(tools.map(({ name }) => name))
    const isWanted = ({ name }: Definition) =>
      include.some((pattern) => matches(pattern, name as string)) &&
      !exclude.some((pattern) => matches(pattern, name as string))

    const entry = (kind: Kind, key: string, about: (name: string, definition: Definition) => About, ref?: Ref) => {
      return (listed: Definition): Entry | [] => {
        const { definition, problem } = visibleDefinition(kind, listed)
        // A listing that an earlier version saved may contain definitions that are dropped when a listing is fetched.
        if (problem !== undefined) return []
        const name = definition[key] as string
        const request = about(name, definition)
        const isTask = asRecord(definition.execution).taskSupport === 'required'
        const forward = (call: Call) => (isTask ? this.#forwardAsTask(request, call) : this.#forward(request, call))
        const override = kind === 'tool' ? overrides.get(name) : undefined
        const entry: Entry = {
          kind,
          server,
          name,
          definition,
          verbatim: definition === listed ? undefined : listed,
          exactSchema: kind === 'tool' ? exactSchemaOf(exactSchemas, name) : undefined,
          traits: traitsOf(kind, name, definition, { server, config, defaults, override }),
          run: kind === 'skill' ? async (call) => this.#checkedFile(call, await forward(call)) : forward,
          relay: relays[kind],
          complete: ref && capabilities.completions !== undefined ? this.#completion(ref(name)) : undefined,
          subscribe: key.startsWith('uri') ? (...params) => subscriptions.subscribe(...params) : undefined,
        }
        return override ? overriddenEntry(entry, override, listedNames) : entry
      }
    }
    const relays: Partial<Record<Kind, Entry['relay']>> = {
      tool: (method, call) => this.#relay(method, call),
      skill: readsFolders(capabilities) ? (_, call) => this.#readFolder(call) : undefined,
    }
    return [
      ...tools.filter(isWanted).flatMap(entry('tool', 'name', aboutTool)),
      ...resources.flatMap(entry('resource', 'uri', aboutResource)),
      ...templates.flatMap(entry('template', 'uriTemplate', aboutResource, (uri) => ({ type: 'ref/resource', uri }))),
      ...prompts.flatMap(entry('prompt', 'name', aboutPrompt, (name) => ({ type: 'ref/prompt', name }))),
      ...skills.flatMap(entry('skill', 'uri', aboutResource)),
    ]
  }

  /** A file of a skill that was read. Throws unless it is the one that the skill's definition lists. */
  #checkedFile({ entry, input: { uri = entry.name } }: Call, result: Result): Result {
    const files = skillFiles(entry.definition)
    const file = files?.find((one) => one.uri === uri)
    const { value } = result.body
    if (!files || value.resultType === 'input_required') return result
    if (file && hasListedContent(file, value)) return result
    this.#port.outdated()
    const { name: server } = this.#server
    const sentence = `${server} returned other content for ${quote(uri)} than its skill lists. Its skills are listed again; read the skill again.`
    throw unansweredError('resources/read', sentence, { server, requestOnly: true })
  }

  /** Reads a folder of a skill whose files are generated. */
  async #readFolder(call: Call): Promise<Result> {
    const result = await this.#forward(aboutFolder, call)
    return { ...result, body: withServedUris(result.body, this.#servedLazily(call), urisOfFolder) }
  }

  #logProblems(problems: readonly string[]): void {
    for (const problem of problems) {
      if (this.#logged.has(problem)) continue
      this.#logged.add(problem)
      this.#server.log.warn({ server: this.#server.name, reason: problem }, 'an override of a tool has no effect')
    }
  }

  async #forward(about: About, call: Call): Promise<Result> {
    const rest =
      call.input.rest && unsealedRest(call.input.rest, this.#server.host.seal, stateBinding(call), this.#replica)
    const used: UsedCall = { call }
    const request = about(call)
    try {
      const answer = await this.#send(rest ? { ...request, rest } : request, used)
      if (!answer.notes.special && rest === undefined) return this.#result(answer, call)
      return await this.#complete(answer, rest, about, used)
    } catch (thrown) {
      throw this.#reported(thrown, request.method, call)
    }
  }

  /**
   * Runs a tool that its server runs only as a task (revision 2025-11-25). For a caller that did not ask for a task,
   * because its protocol revision or its client knows no such tasks, starts one and returns its result.
   */
  async #forwardAsTask(about: About, call: Call): Promise<Result> {
    // A server with `session: call` forgets the task before its result is requested.
    if (call.input.rest?.task !== undefined || this.#server.config.session === 'call') return this.#forward(about, call)
    const request = about(call)
    try {
      const answer = await this.#send({ ...request, rest: { ...call.input.rest, task: {} } }, { call })
      const taskId = startedTaskId(answer.result)
      return this.#result(taskId === undefined ? answer : await this.#waitForTask(taskId, call), call)
    } catch (thrown) {
      throw this.#reported(thrown, request.method, call)
    }
  }

  /** Waits for the result of a task that Toolway started. The task is cancelled with the call. */
  async #waitForTask(taskId: string, call: Call): Promise<ResultMessage> {
    const { clock, host } = this.#server
    const members = [Buffer.from(`"taskId":${JSON.stringify(taskId)}`)]
    const request = (method: string, asked: Call) => this.#send({ method, name: taskId, members }, { call: asked })
    const cancel = () => {
      const limit = deadline(clock, cancelWithinMs, () => new Error('not cancelled in time'))
      request('tasks/cancel', { ...call, signal: limit.signal })
        .catch(() => {})
        .finally(() => limit[Symbol.dispose]())
    }
    call.signal.addEventListener('abort', cancel, { once: true })
    try {
      return await resultOfTask(call, host.seal, request)
    } catch (thrown) {
      throw ToolwayError.sent(thrown)
    } finally {
      call.signal.removeEventListener('abort', cancel)
    }
  }

  /** Completes a result that needs input: asks the caller round by round, unless the caller sends follow-ups itself. */
  async #complete(first: ResultMessage, brought: Call['input']['rest'], about: About, used: UsedCall): Promise<Result> {
    const { call } = used
    const { seal } = this.#server.host
    let answer = first
    let rest = brought
    for (let round = 0; ; round++) {
      const type = resultTypeOf(answer.result)
      if (type !== 'input_required') return this.#typedResult(type, answer, about, used)
      const result = checkedInputRequests(answer.result, call)
      if (!call.peer.rounds && round === maxRounds) throw this.#unusableType(type, about(call).method)
      if (call.peer.rounds)
        return { body: sealedResult(result, seal, stateBinding(call), this.#replica), isError: false }
      rest = { ...rest, ...(await askCaller(result, call)) }
      // Remove `unsent` from the error: the earlier rounds of this call were sent.
      answer = await this.#send({ ...about(call), rest }, used).catch((error) => {
        throw ToolwayError.sent(error)
      })
    }
  }

  /** A result that may have started a task. */
  #typedResult(type: string, answer: ResultMessage, about: About, { call, connection: open }: UsedCall): Result {
    const { policy, host, clock } = this.#server
    if (open?.handshake.era === 'modern' && !understands(call, type)) throw this.#unusableType(type, about(call).method)
    if (!open || (type !== 'task' && call.input.rest?.task === undefined)) return this.#result(answer, call)
    const { connection } = open
    const until = clock.monotonic() + taskLifetimeMs(answer.result)
    connection.tasksUntil = Math.max(connection.tasksUntil, until)
    // The policy may change before the task ends.
    const mayUse = () => policy?.decide?.(call.caller, call.entry).allowed ?? true
    const result = sealStartedTask(answer.result, call, host.seal, connection.taskUpdates, mayUse)
    return this.#result({ ...answer, result }, call)
  }

  async #relay(method: string, call: Call): Promise<Result> {
    const ask = async (taskId: string, asked: Call) => {
      const { taskId: _, ...rest } = call.input.rest ?? {}
      const members = [Buffer.from(`"taskId":${JSON.stringify(taskId)}`)]
      const { result, notes } = await this.#send({ method, name: taskId, members, rest }, { call: asked })
      return notes.special && asksForInput(result) ? checkedInputRequests(result, call) : result
    }
    try {
      const { body, isError } = await relayTask(method, call, this.#server.host.seal, ask, this.#replica)
      return { body: servedTaskResult(body, this.#servedLazily(call)), isError }
    } catch (thrown) {
      throw this.#reported(thrown, method, call)
    }
  }

  #completion(ref: object): Handler {
    const method = 'completion/complete'
    return async (call) => {
      const members = [Buffer.from(`"ref":${JSON.stringify(ref)},`), call.input.arguments.bytes.subarray(1, -1)]
      const { trace, signal } = call
      const { capabilities } = call.caller
      const spec = { method, members, trace, capabilities, signal, repeatable: true }
      try {
        const { result } = await this.#use(call, method, (open) => open.connection.request(encodeRequest(open, spec)))
        return { body: Json.raw(result), isError: false }
      } catch (thrown) {
        throw this.#reported(thrown, method, call)
      }
    }
  }

  #send(target: Target, used: UsedCall): Promise<ResultMessage> {
    const { call } = used
    const { signal, peer, trace, input } = call
    const { readOnly, idempotent } = call.entry.traits
    const spec = {
      ...target,
      ...{ trace, signal, peer },
      meta: foreignMeta(input.meta),
      capabilities: call.caller.capabilities,
      repeatable: readOnly || idempotent,
      progressed: target.method === 'tools/call' ? call.progressed : undefined,
    }
    const sendRequest: ForwardedWork = (open) => {
      used.connection = open
      return open.connection.request(encodeRequest(open, spec))
    }
    const isTold = input.meta.progressToken !== undefined
    return isTold ? this.#useAndTell(call, target.method, sendRequest) : this.#use(call, target.method, sendRequest)
  }

  async #use(call: CallerUse & Call, method: string, sendRequest: ForwardedWork): Promise<ResultMessage> {
    const start = performance.now()
    const answer = await this.#port.use(call, sendRequest)
    this.#port.answered(performance.now() - start)
    checkLimits(answer, method, this.#server.name)
    return answer
  }

  /** While the call waits for a connection, reports progress to a caller that asked for it. */
  async #useAndTell(call: Call, method: string, sendRequest: ForwardedWork): Promise<ResultMessage> {
    const { name, clock } = this.#server
    const { input, peer } = call
    const began = clock.monotonic()
    let what = `${name} to start`
    using telling = everySecond(clock, () => notifyWaitingFor(input.meta, peer, clock.monotonic() - began, what))
    const waitsFor = (other: string) => {
      what = other
    }
    return await this.#use({ ...call, waitsFor }, method, (open) => {
      telling[Symbol.dispose]()
      return sendRequest(open)
    })
  }

  /** Reports a failed call; returns its error. */
  #reported(thrown: unknown, method: string, { entry }: Call): unknown {
    const { name: server } = this.#server
    this.#port.failed(thrown)
    if (thrown instanceof AmbiguousMember) {
      const sentence = `${server} returned an ambiguous result. ${thrown.message}`
      return unansweredError(method, sentence, { server, requestOnly: true })
    }
    const limit = LimitExceeded.in(thrown)
    if (limit) this.#port.exceeded(limit, method, entry.name)
    return thrown
  }

  #unusableType(type: string, method: string): ToolwayError {
    const { name: server } = this.#server
    const why = type === 'input_required' ? `even after ${maxRounds} rounds` : 'which your client does not support'
    const sentence = `${server} returned a result of the type ${quote(type)}, ${why}.`
    return unansweredError(method, sentence, { server, requestOnly: true })
  }

  #result({ result, notes }: ResultMessage, call: Call): Result {
    const { isError, special } = notes
    const raw = Json.raw<ResultBody>(result)
    const body = mayHaveUris(result) ? servedResult(raw, this.#servedLazily(call)) : raw
    return special ? { body, isError } : { body, isError, plain: true }
  }

  /** Looks up the caller's catalog once per result, and only if the result contains a URI. */
  #servedLazily(call: Call): (uri: string) => string {
    let served: ((uri: string) => string) | undefined
    return (uri) => {
      served ??= this.#server.host.servedUris(call)
      return served(uri)
    }
  }

  /**
   * The replica that alone can continue a call or task: each replica runs its own process of a stdio server. Undefined if
   * all replicas reach the same server, or if there is only one.
   */
  get #replica(): string | undefined {
    const { config, host } = this.#server
    return config.transport === 'stdio' ? host.seal.replica : undefined
  }
}

const asksForInput = (result: Buffer): boolean => members(result, ['inputRequests'])?.has('inputRequests') ?? true

/** Binds a sealed state to one caller and one entry. */
const stateBinding = ({ entry, caller }: Call): string =>
  [entry.server, entry.kind, entry.name, ownerKey(caller)].join('\n')

function exactSchemaOf(schemas: Descriptors['exactSchemas'], tool: string): Entry['exactSchema'] {
  if (!schemas || !Object.hasOwn(schemas, tool)) return undefined
  const inputSchema = parseExactly(schemas[tool] as string) as Record<string, unknown>
  return repairedDefinition('tool', { inputSchema }).inputSchema
}

type Ref = (name: string) => object

/** Builds the part of a request that names its target. The bytes that are the same in every call are prepared once. */
type About = (call: Call) => Pick<RequestSpec, 'method' | 'name' | 'headers'> & { readonly members: readonly Buffer[] }

const aboutTool = (name: string, { inputSchema }: Definition): About => {
  const start = Buffer.from(`"name":${JSON.stringify(name)},"arguments":`)
  const inHeaders = JSON.stringify(inputSchema).includes('"x-mcp-header"')
  return ({ input }) => ({
    method: 'tools/call',
    name,
    members: [start, input.arguments.bytes],
    headers: inHeaders ? paramHeaders(inputSchema, input.arguments.exact) : undefined,
  })
}

const aboutPrompt = (name: string): About => {
  const start = Buffer.from(`"name":${JSON.stringify(name)},"arguments":`)
  return ({ input }) => ({ method: 'prompts/get', name, members: [start, input.arguments.bytes] })
}

const aboutFolder: About = ({ entry, input: { uri = entry.name } }) => ({
  method: 'resources/directory/read',
  members: [Buffer.from(`"uri":${JSON.stringify(uri)}`)],
})

const readsFolders = ({ extensions }: Capabilities): boolean =>
  asRecord(asRecord(extensions)[skillsExtension]).directoryRead === true

const aboutResource = (name: string): About => {
  return ({ input: { uri = name } }) => {
    return { method: 'resources/read', name: uri, members: [Buffer.from(`"uri":${JSON.stringify(uri)}`)] }
  }
}

/** Throws if a result is ambiguous, or has more content blocks or values than a client can be expected to process. */
function checkLimits({ result, notes }: ResultMessage, method: string, server: string): void {
  const oversized = (what: string, cause: LimitExceeded) =>
    unansweredError(method, `${server} returned a result with ${what} (a fixed limit).`, { server, cause })
  if (notes.repeated !== undefined) {
    const sentence = `${server} returned a result in which "${notes.repeated}" occurs twice. Programs differ in which of the two they take.`
    throw unansweredError(method, sentence, { server, requestOnly: true })
  }
  if (notes.blocks > maxBlocks) {
    const many = `${withCommas(notes.blocks)} content blocks; at most ${withCommas(maxBlocks)} are accepted`
    throw oversized(many, new LimitExceeded('too-many-blocks', maxBlocks))
  }
  if (hasMoreValues(result, maxResultValues)) {
    const many = `more than ${withCommas(maxResultValues)} values`
    throw oversized(many, new LimitExceeded('too-many-values', maxResultValues))
  }
}

/** The caller's `_meta` without the members that are meant for Toolway. */
function foreignMeta(meta: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  for (const key of Object.keys(meta))
    if (key.startsWith(ourPrefix))
      return Object.fromEntries(Object.entries(meta).filter(([key]) => !key.startsWith(ourPrefix)))
  return meta
}

const ourPrefix = 'dev.toolway/'
