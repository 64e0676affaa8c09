import type { ServerConfig } from '../../config/schema.ts'
import { type Call, type Handler, ownerKey } from '../../core/call.ts'
import type { Clock } from '../../core/clock.ts'
import { deadline } from '../../core/deadline.ts'
import type { Decide } from '../../core/decision.ts'
import type { Definition, Entry, Kind } from '../../core/entry.ts'
import { ToolwayError } from '../../core/errors.ts'
import { fixedLimits } from '../../core/limits/fixed-limits.ts'
import type { Result, ResultBody } from '../../core/result.ts'
import type { Descriptors } from '../../core/stores.ts'
import { everySecond, notifyWaitingFor } from '../../core/waiting.ts'
import { parseExactly } from '../../json/exact-number.ts'
import { Json } from '../../json/json.ts'
import { elements, hasMoreValues, members } from '../../json/json-text.ts'
import { asRecord } from '../../lib/is-record.ts'
import { quote } from '../../lib/message-text.ts'
import type { Seal } from '../../lib/seal.ts'
import { matches } from '../../lib/wildcard.ts'
import { bytesOf, type Replacement, splice, textOf } from '../../wire/bytes.ts'
import { AmbiguousMember, unambiguous } from '../../wire/check-members.ts'
import { maxBlocks, maxResultValues, type ResultMessage } from '../../wire/message.ts'
import { paramHeaders } from '../../wire/param-headers.ts'
import type { ConnectionUser } from '../connection/client.ts'
import type { InitializedConnection } from '../connection/handshake.ts'
import { repairedDefinition, traitsOf, visibleDefinition } from '../listing/definitions.ts'
import { written } from '../listing/list-reader.ts'
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
import type { UpstreamSubscriptions } from './subscriptions.ts'
import { relayTask, resultOfTask, startedTask, startedTaskId, taskLifetimeMs } from './tasks.ts'

export interface ForwardedEntryOptions {
  readonly server: string
  readonly config: ServerConfig
  readonly timeoutMs: number
  readonly maxTimeoutMs: number
  use(
    call: Call & ConnectionUser,
    work: (open: InitializedConnection) => Promise<ResultMessage>,
  ): Promise<ResultMessage>
  readonly subscriptions: UpstreamSubscriptions
  servedUris(call: Call): (uri: string) => string
  readonly seal: Seal
  /** Whether the current policy allows an entry, for updates after the call; if absent, everything is allowed. */
  readonly decide?: Decide | undefined
  /** Called if a call failed because the server's message exceeds a limit. */
  exceeded?(limit: LimitExceeded, method: string, name: string): void
  readonly clock: Clock
}

/** The entries for a server's listing. Their `run` forwards calls to the server. */
export function forwardedEntries(descriptors: Descriptors, options: ForwardedEntryOptions): Entry[] {
  const { capabilities, exactSchemas } = descriptors
  const { server, config, subscriptions } = options
  const { include, exclude } = config.tools
  const wanted = ({ name }: Definition) =>
    include.some((pattern) => matches(pattern, name as string)) &&
    !exclude.some((pattern) => matches(pattern, name as string))

  const entry = (kind: Kind, key: string, about: (name: string, definition: Definition) => About, ref?: Ref) => {
    return (listed: Definition): Entry | [] => {
      const { definition, problem } = visibleDefinition(kind, listed)
      // A listing that an earlier version saved may contain definitions that are dropped when a listing is fetched.
      if (problem !== undefined) return []
      const name = definition[key] as string
      return {
        kind,
        server,
        name,
        definition,
        verbatim: definition === listed ? undefined : listed,
        exactSchema: kind === 'tool' ? exactSchemaOf(exactSchemas, name) : undefined,
        traits: traitsOf(kind, name, definition, options),
        run:
          asRecord(definition.execution).taskSupport === 'required'
            ? forwardAsTask(about(name, definition), options)
            : forward(about(name, definition), options),
        relay: kind === 'tool' ? (method, call) => relay(method, call, options) : undefined,
        complete: ref && capabilities.completions !== undefined ? completion(ref(name), options) : undefined,
        subscribe: key.startsWith('uri') ? (...params) => subscriptions.subscribe(...params) : undefined,
      }
    }
  }
  return [
    ...descriptors.tools.filter(wanted).flatMap(entry('tool', 'name', aboutTool)),
    ...descriptors.resources.flatMap(entry('resource', 'uri', aboutResource)),
    ...descriptors.templates.flatMap(
      entry('template', 'uriTemplate', aboutResource, (uri) => ({ type: 'ref/resource', uri })),
    ),
    ...descriptors.prompts.flatMap(entry('prompt', 'name', aboutPrompt, (name) => ({ type: 'ref/prompt', name }))),
  ]
}

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

const aboutResource = (name: string): About => {
  return ({ input: { uri = name } }) => {
    return { method: 'resources/read', name: uri, members: [Buffer.from(`"uri":${JSON.stringify(uri)}`)] }
  }
}

const maxRounds = fixedLimits.inputRounds.value

/** The connection that a request used. Updates to a task arrive on the connection that started the task. */
interface UsedConnection {
  connection?: InitializedConnection
}

const forward = (about: About, options: ForwardedEntryOptions): Handler => {
  return async (call) => {
    const rest = call.input.rest && unsealedRest(call.input.rest, options.seal, bindingOf(call), processOf(options))
    const used: UsedConnection = {}
    const request = about(call)
    try {
      const answer = await send({ ...request, rest }, call, options, used)
      if (!answer.notes.special && rest === undefined) return resultFrom(answer, call, options)
      return await untilComplete(answer, rest, about, call, options, used)
    } catch (thrown) {
      throw noted(thrown, request.method, call, options)
    }
  }
}

/** How long Toolway waits until a server has cancelled a task whose caller has gone. */
const cancelWithinMs = 5_000

/**
 * Runs a tool that its server runs only as a task (revision 2025-11-25). For a caller that did not ask for a task, because
 * its protocol revision or its client knows no such tasks, starts one and returns its result.
 */
const forwardAsTask = (about: About, options: ForwardedEntryOptions): Handler => {
  const forwardAsAsked = forward(about, options)
  return async (call) => {
    // A server with `session: call` forgets the task before its result is requested.
    if (call.input.rest?.task !== undefined || options.config.session === 'call') return forwardAsAsked(call)
    const request = about(call)
    try {
      const answer = await send({ ...request, rest: { ...call.input.rest, task: {} } }, call, options)
      const taskId = startedTaskId(answer.result)
      const last = taskId === undefined ? answer : await waitForTask(taskId, call, options)
      return resultFrom(last, call, options)
    } catch (thrown) {
      throw noted(thrown, request.method, call, options)
    }
  }
}

/** Waits for the result of a task that Toolway started. The task is cancelled with the call. */
async function waitForTask(taskId: string, call: Call, options: ForwardedEntryOptions): Promise<ResultMessage> {
  const members = [Buffer.from(`"taskId":${JSON.stringify(taskId)}`)]
  const request = (method: string, asked: Call) => send({ method, name: taskId, members }, asked, options)
  const cancel = () => {
    const limit = deadline(options.clock, cancelWithinMs, () => new Error('not cancelled in time'))
    request('tasks/cancel', { ...call, signal: limit.signal })
      .catch(() => {})
      .finally(() => limit[Symbol.dispose]())
  }
  call.signal.addEventListener('abort', cancel, { once: true })
  try {
    return await resultOfTask(call, options.seal, request)
  } catch (thrown) {
    throw ToolwayError.sent(thrown)
  } finally {
    call.signal.removeEventListener('abort', cancel)
  }
}

/** Reports an error about a message that exceeds a limit; returns the error. */
function noted(thrown: unknown, method: string, { entry }: Call, options: ForwardedEntryOptions): unknown {
  if (thrown instanceof AmbiguousMember) {
    const { server } = options
    return unansweredError(method, `${server} returned an ambiguous result. ${thrown.message}`, {
      server,
      requestOnly: true,
    })
  }
  const limit = LimitExceeded.in(thrown)
  if (limit) options.exceeded?.(limit, method, entry.name)
  return thrown
}

/** Throws if a result is ambiguous, or has more content blocks or values than a client can be expected to process. */
function withinLimits(message: ResultMessage, method: string, server: string): ResultMessage {
  const { result, notes } = message
  const oversized = (what: string, cause: LimitExceeded) =>
    unansweredError(method, `${server} returned a result with ${what} (a fixed limit).`, { server, cause })
  if (notes.repeated !== undefined) {
    const sentence = `${server} returned a result in which "${notes.repeated}" occurs twice. Programs differ in which of the two they take.`
    throw unansweredError(method, sentence, { server, requestOnly: true })
  }
  if (notes.blocks > maxBlocks) {
    const many = `${written(notes.blocks)} content blocks; at most ${written(maxBlocks)} are accepted`
    throw oversized(many, new LimitExceeded('too-many-blocks', maxBlocks))
  }
  if (hasMoreValues(result, maxResultValues)) {
    const many = `more than ${written(maxResultValues)} values`
    throw oversized(many, new LimitExceeded('too-many-values', maxResultValues))
  }
  return message
}

/** Completes a result that needs input: asks the caller round by round, unless the caller sends follow-ups itself. */
async function untilComplete(
  first: ResultMessage,
  brought: Call['input']['rest'],
  about: About,
  call: Call,
  options: ForwardedEntryOptions,
  used: UsedConnection,
): Promise<Result> {
  let answer = first
  let rest = brought
  for (let round = 0; ; round++) {
    let { result } = answer
    const type = resultTypeOf(result)
    const isModern = used.connection?.handshake.era === 'modern'
    if (type !== 'input_required') {
      if (isModern && !understands(call, type)) throw unusableType(type, about(call).method, options)
      if (!used.connection || (type !== 'task' && call.input.rest?.task === undefined))
        return resultFrom(answer, call, options)
      const { connection } = used.connection
      const { taskUpdates, tasksUntil } = connection
      connection.tasksUntil = Math.max(tasksUntil, options.clock.monotonic() + taskLifetimeMs(result))
      const mayUse = () => options.decide?.(call.caller, call.entry).allowed ?? true
      const started = startedTask(result, call, options.seal, taskUpdates, mayUse)
      return resultFrom({ ...answer, result: started }, call, options)
    }
    result = checkedInputRequests(result, call)
    if (!call.peer.rounds && round === maxRounds) throw unusableType(type, about(call).method, options)
    if (call.peer.rounds) {
      return { body: sealedResult(result, options.seal, bindingOf(call), processOf(options)), isError: false }
    }
    rest = { ...rest, ...(await askCaller(result, call)) }
    // Remove `unsent` from the error: the earlier rounds of this call were sent.
    answer = await send({ ...about(call), rest }, call, options, used).catch((error) => {
      throw ToolwayError.sent(error)
    })
  }
}

function unusableType(type: string, method: string, { server }: ForwardedEntryOptions): ToolwayError {
  const why = type === 'input_required' ? `even after ${maxRounds} rounds` : 'which your client does not support'
  const sentence = `${server} returned a result of the type ${quote(type)}, ${why}.`
  return unansweredError(method, sentence, { server, requestOnly: true })
}

/**
 * The replica that alone can continue a call or task: each replica runs its own process of a stdio server. Undefined if
 * all replicas reach the same server, or if there is only one.
 */
const processOf = ({ config, seal }: ForwardedEntryOptions): string | undefined =>
  config.transport === 'stdio' ? seal.replica : undefined

/** Binds a sealed state to one caller and one entry. */
const bindingOf = ({ entry, caller }: Call): string =>
  [entry.server, entry.kind, entry.name, ownerKey(caller)].join('\n')

function send(
  what: Pick<RequestSpec, 'method' | 'members' | 'rest' | 'name' | 'headers'>,
  call: Call,
  options: ForwardedEntryOptions,
  used: UsedConnection = {},
): Promise<ResultMessage> {
  const { signal, peer, trace } = call
  const { capabilities } = call.caller
  const { readOnly, idempotent } = call.entry.traits
  const repeatable = readOnly || idempotent
  const meta = foreign(call.input.meta)
  const progressed = what.method === 'tools/call' ? call.progressed : undefined
  return useWithProgress(call, options, (open) => {
    used.connection = open
    const spec = { ...what, meta, trace, capabilities, signal, repeatable, peer, progressed }
    return open.connection
      .request(encodeRequest(open, spec))
      .then((answer) => withinLimits(answer, what.method, options.server))
  })
}

/** Uses a connection. While the call waits for it, reports progress to a caller that asked for it. */
function useWithProgress(
  call: Call,
  options: ForwardedEntryOptions,
  work: (open: InitializedConnection) => Promise<ResultMessage>,
): Promise<ResultMessage> {
  return call.input.meta.progressToken === undefined ? options.use(call, work) : useAndTell(call, options, work)
}

async function useAndTell(
  call: Call,
  { use, server, clock }: ForwardedEntryOptions,
  work: (open: InitializedConnection) => Promise<ResultMessage>,
): Promise<ResultMessage> {
  const { input, peer } = call
  const began = clock.monotonic()
  let what = `${server} to start`
  using telling = everySecond(clock, () => notifyWaitingFor(input.meta, peer, clock.monotonic() - began, what))
  const waitsFor = (other: string) => {
    what = other
  }
  return await use({ ...call, waitsFor }, (open) => {
    telling[Symbol.dispose]()
    return work(open)
  })
}

const asksForInput = (result: Buffer): boolean => members(result, ['inputRequests'])?.has('inputRequests') ?? true

const relay = async (method: string, call: Call, options: ForwardedEntryOptions): Promise<Result> => {
  const ask = (taskId: string, asked: Call) => {
    const { taskId: _, ...rest } = call.input.rest ?? {}
    const members = [Buffer.from(`"taskId":${JSON.stringify(taskId)}`)]
    return send({ method, name: taskId, members, rest }, asked, options).then(({ result, notes }) =>
      notes.special && asksForInput(result) ? checkedInputRequests(result, call) : result,
    )
  }
  const { body, isError } = await relayTask(method, call, options.seal, ask, processOf(options)).catch((thrown) => {
    throw noted(thrown, method, call, options)
  })
  return { body: servedTaskResult(body, servedLazily(call, options)), isError }
}

const completion = (ref: object, options: ForwardedEntryOptions): Handler => {
  const method = 'completion/complete'
  return async (call) => {
    const members = [Buffer.from(`"ref":${JSON.stringify(ref)},`), call.input.arguments.bytes.subarray(1, -1)]
    const { trace, signal } = call
    const { capabilities } = call.caller
    const spec = { method, members, trace, capabilities, signal, repeatable: true }
    try {
      const answer = await options.use(call, (open) => open.connection.request(encodeRequest(open, spec)))
      return { body: Json.raw(withinLimits(answer, method, options.server).result), isError: false }
    } catch (thrown) {
      throw noted(thrown, method, call, options)
    }
  }
}

const resultFrom = ({ result, notes }: ResultMessage, call: Call, options: ForwardedEntryOptions): Result => {
  const { isError, special } = notes
  const body = servedResult(Json.raw<ResultBody>(result), servedLazily(call, options))
  return special ? { body, isError } : { body, isError, plain: true }
}

/** Looks up the caller's catalog once per result, and only if the result contains a URI. */
function servedLazily(call: Call, { servedUris }: ForwardedEntryOptions): (uri: string) => string {
  let served: ((uri: string) => string) | undefined
  return (uri) => {
    served ??= servedUris(call)
    return served(uri)
  }
}

/** The caller's `_meta` without the members that are meant for Toolway. */
function foreign(meta: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  const isOurs = (key: string) => key.startsWith('dev.toolway/')
  return Object.keys(meta).some(isOurs)
    ? Object.fromEntries(Object.entries(meta).filter(([key]) => !isOurs(key)))
    : meta
}

/**
 * Rewrites the URIs in resource links, embedded resources and resource contents to those that callers use (`served`).
 * Only the bytes of those URIs change. A result without `"uri"` is returned unparsed, unless it has escapes: only they
 * allow another spelling.
 */
export const servedResult = (body: Json<ResultBody>, served: (uri: string) => string): Json<ResultBody> =>
  withServedUris(body, served, urisOfResult)

/** Rewrites the URIs in a task, which may contain the result of the call that started it. */
export const servedTaskResult = (body: Json<ResultBody>, served: (uri: string) => string): Json<ResultBody> =>
  withServedUris(body, served, (bytes) => {
    const result = unambiguous(bytes, ['result']).get('result')
    const uris = [...urisOfResult(bytes), ...(result ? urisOfResult(result) : [])]
    return uris.sort((a, b) => a.byteOffset - b.byteOffset)
  })

type UrisOf = (bytes: Buffer) => Iterable<Buffer>

function withServedUris(body: Json<ResultBody>, served: (uri: string) => string, urisOf: UrisOf): Json<ResultBody> {
  const { bytes } = body
  if (!bytes.includes('"uri"') && !bytes.includes('\\u')) return body
  const replacements: Replacement[] = []
  for (const uri of urisOf(bytes)) {
    const original = textOf(uri)
    const replaced = original === undefined ? undefined : served(original)
    if (replaced !== undefined && replaced !== original) replacements.push([uri, bytesOf(replaced)])
  }
  return replacements.length === 0 ? body : Json.raw<ResultBody>(splice(bytes, replacements))
}

const blocksOf = (list: Buffer): readonly Buffer[] => elements(list) ?? []

function* urisOfResult(bytes: Buffer): Generator<Buffer> {
  for (const [key, value] of members(bytes, ['content', 'contents', 'messages']) ?? []) {
    if (key === 'content') for (const block of blocksOf(value)) yield* urisOfBlock(block)
    if (key === 'contents') for (const content of blocksOf(value)) yield* urisOfResource(content)
    if (key === 'messages') for (const message of blocksOf(value)) yield* urisOfMessage(message)
  }
}

function* urisOfMessage(message: Buffer): Generator<Buffer> {
  const content = unambiguous(message, ['content']).get('content')
  if (content) for (const block of elements(content) ?? [content]) yield* urisOfBlock(block)
}

function* urisOfBlock(block: Buffer): Generator<Buffer> {
  const fields = unambiguous(block, ['type', 'uri', 'resource'])
  const type = textOf(fields.get('type'))
  const uri = fields.get('uri')
  const resource = fields.get('resource')
  if (type === 'resource_link' && uri) yield uri
  if (type === 'resource' && resource) yield* urisOfResource(resource)
}

function* urisOfResource(resource: Buffer): Generator<Buffer> {
  const uri = unambiguous(resource, ['uri']).get('uri')
  if (uri) yield uri
}
