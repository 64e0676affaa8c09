import { randomUUID } from 'node:crypto'
import type { Access, LookupOptions, MissingServer, Served, View } from '../../core/access.ts'
import type { Call, Caller, Handler, Input, LogLevel, Peer } from '../../core/call.ts'
import type { Kind } from '../../core/entry.ts'
import { type RpcErrorObject, ServerError, ToolwayError, UnsupportedRequest } from '../../core/errors.ts'
import type { Exposure } from '../../core/exposure.ts'
import { knownClient } from '../../core/known-clients.ts'
import { type Result, resultOf } from '../../core/result.ts'
import { serversSentence } from '../../core/servers-sentence.ts'
import { folderChildren, skillFiles, skillRoot } from '../../core/skills.ts'
import { readTaskId } from '../../core/task-id.ts'
import { isWaitingNotice, notifyWaiting, type Wait } from '../../core/waiting.ts'
import { Json } from '../../json/json.ts'
import { members } from '../../json/json-text.ts'
import { jsonValue } from '../../json/parse-json.ts'
import { isRecord } from '../../lib/is-record.ts'
import { quote } from '../../lib/message-text.ts'
import type { Pieces } from '../../wire/bytes.ts'
import { type Id, notificationBytes } from '../../wire/message.ts'
import { withoutEnvelope } from '../../wire/revisions.ts'
import { ProtocolError, rpcCodes } from '../errors.ts'
import { type InboundRequest, memberOf, type Params, type ReceivedParams } from '../inbound-message.ts'
import { type Session, undeclaredRequest, wantsNotification } from '../session/session.ts'

export interface CallPeer extends Peer {
  readonly signal: AbortSignal
  /** The error to return if the call fails, because a question was refused that its client cannot answer. */
  readonly missingCapability?: Error | undefined
}

/** One page of a list, as JSON members without the enclosing braces. */
interface ListPage {
  readonly members: Pieces
  /** Servers whose entries are missing. The protocols report them in `_meta` under `missingServersKey`. */
  readonly missing: readonly MissingServer[]
  /** How long a client may cache the list, if one of its servers says so. */
  readonly ttlMs: number | undefined
}

export const missingServersKey = 'dev.toolway/missing'

const listFields: Readonly<Record<Kind, string>> = {
  tool: 'tools',
  resource: 'resources',
  template: 'resourceTemplates',
  prompt: 'prompts',
  skill: 'skills',
}

/** Encodes a result for a protocol. `reads` is passed if the result is a resource's content. */
type ResultEncoder = (result: Result, reads?: 'reads') => Pieces

export const listedKinds: ReadonlyMap<string, Kind> = new Map([
  ['tools/list', 'tool'],
  ['resources/list', 'resource'],
  ['resources/templates/list', 'template'],
  ['prompts/list', 'prompt'],
  ['skills/list', 'skill'],
])

/** Tells a model that not all tools are listed, or a client that searches them what it can find (V14). */
function howToFindTools(view: View, caller: Caller): string | undefined {
  const mode = view.exposure()
  const sentence = knownClient(caller.client).searchesTools ? bySearching : howToFind[mode]
  return sentence && `${sentence}${serversSentence(view.servers())}`
}

const bySearching = 'Search for the tools of these servers when a task concerns them.'
const howToFind: Partial<Record<Exposure, string>> = {
  meta: 'Most tools are not listed: find_tool searches them, and execute_tool runs what it finds.',
  code: 'Most tools are not listed: search_tools finds them, and programs in execute_code call them.',
}

/** The operations that both protocols share. `encode` encodes results; `readable` converts tool lists for clients. */
export class Operations {
  readonly #access: Access
  readonly #encode: ResultEncoder
  readonly #readable: (tools: Buffer) => Buffer

  constructor(access: Access, encode: ResultEncoder, readable = (tools: Buffer) => tools) {
    this.#access = access
    this.#encode = encode
    this.#readable = readable
  }

  /** What the gateway tells a client of itself first. Waits briefly, because servers tell their part when they start. */
  async introduce(view: View, caller: Caller, { instructions, isImmediate }: Introduction) {
    const ready = view.ready('brief')
    if (!isImmediate) await ready
    const offers = this.#access.offers(caller)
    const text = [instructions, howToFindTools(view, caller), offers.instructions].filter(Boolean).join('\n\n')
    return { capabilities: offers.capabilities, ...(text !== '' && { instructions: text }) }
  }

  async list(kind: Kind, params: Params, caller: Caller): Promise<ListPage> {
    const { cursor } = params
    if (cursor !== undefined && typeof cursor !== 'string') throw invalidParams('The cursor must be a string.')
    const view = this.#access.view(caller)
    await view.ready()
    const { items, nextCursor } = pageOrRefuse(() => view.page(kind, cursor))
    const page = [Buffer.from(`"${listFields[kind]}":`), kind === 'tool' ? this.#readable(items) : items]
    const end = nextCursor === undefined ? [] : [Buffer.from(`,"nextCursor":${JSON.stringify(nextCursor)}`)]
    return { members: [...page, ...end], missing: view.missing(kind), ttlMs: view.listTtlMs(kind) }
  }

  /**
   * Runs a request that calls, reads, gets or completes something, or concerns a task. `inspect` runs once the policy has
   * allowed a tool; it throws to reject the call.
   */
  call(request: CallRequest, caller: Caller, peer: CallPeer, inspect?: (tool: Served) => void): Promise<Pieces> {
    switch (request.method) {
      case 'tools/call':
        return this.#callTool(request, caller, peer, inspect)
      case 'resources/read':
        return this.#readResource(request, caller, peer)
      case 'prompts/get':
        return this.#getPrompt(request, caller, peer)
      case 'skills/get':
        return this.#getSkill(request, caller)
      case 'resources/directory/read':
        return this.#readFolder(request, caller, peer)
      case 'completion/complete':
        return this.#complete(request, caller, peer)
      default:
        return this.#relayTask(request, caller, peer)
    }
  }

  async #callTool(
    request: CallRequest,
    caller: Caller,
    peer: CallPeer,
    inspect?: (tool: Served) => void,
  ): Promise<Pieces> {
    const view = this.#access.view(caller)
    const name = textParam(request.params, 'name')
    const served = view.known('tool', name) ?? (await view.resolve('tool', name, callWait(request.params, peer)))
    const admit = inspect && (() => inspect(served))
    const given = namedInput(request)
    const { restore } = served
    const input = restore ? { ...given, arguments: restore(given.arguments) } : given
    return this.#encode(await this.#run(this.#access.handle, served, input, caller, peer, admit))
  }

  async #readResource(request: CallRequest, caller: Caller, peer: CallPeer): Promise<Pieces> {
    const uri = textParam(request.params, 'uri')
    const served = await this.#access.view(caller).resolve('resource', uri, callWait(request.params, peer))
    const ofServer = served.uri ?? uri
    const input = {
      arguments: Json.of({}),
      uri: ofServer,
      meta: metaOf(request),
      ...unhandledParams(request, handledOfRead),
    }
    try {
      return this.#encode(await this.#run(this.#access.handle, served, input, caller, peer), 'reads')
    } catch (thrown) {
      throw withRequestedUri(thrown, { ofServer, requested: uri })
    }
  }

  async #getSkill(request: CallRequest, caller: Caller): Promise<Pieces> {
    const uri = textParam(request.params, 'uri')
    const view = this.#access.view(caller)
    await view.ready()
    const skill = view.list('skill').find(({ name }) => name === uri)?.definition
    if (skill === undefined) throw invalidParams(`No skill is served at ${quote(uri)}.`)
    return this.#encode(resultOf({ skill }), 'reads')
  }

  /** Lists a folder of a skill: from the skill's definition, or by its server if the skill's files are generated. */
  async #readFolder(request: CallRequest, caller: Caller, peer: CallPeer): Promise<Pieces> {
    const uri = textParam(request.params, 'uri')
    const view = this.#access.view(caller)
    await view.ready()
    const skills = view.list('skill')
    for (const { definition } of skills) {
      const resources = folderChildren(skillFiles(definition) ?? [], uri)
      if (resources) return this.#encode(resultOf({ resources }))
    }
    const skill = skills.find(({ name }) => `${uri}/`.startsWith(`${skillRoot(name)}/`))
    if (!skill?.entry.relay || skillFiles(skill.definition))
      throw invalidParams(`${quote(uri)} is not a directory resource.`)
    const own = skillRoot(skill.entry.name) + uri.slice(skillRoot(skill.name).length)
    const input = {
      arguments: Json.of({}),
      uri: own,
      meta: metaOf(request),
      ...unhandledParams(request, handledOfRead),
    }
    const relay: Handler = (call) => this.#access.relay(request.method, call)
    return this.#encode(await this.#run(relay, skill, input, caller, peer))
  }

  async #getPrompt(request: CallRequest, caller: Caller, peer: CallPeer): Promise<Pieces> {
    const name = textParam(request.params, 'name')
    const served = await this.#access.view(caller).resolve('prompt', name, callWait(request.params, peer))
    return this.#encode(await this.#run(this.#access.handle, served, namedInput(request), caller, peer))
  }

  async #complete(request: CallRequest, caller: Caller, peer: CallPeer): Promise<Pieces> {
    const { ref, argument } = request.params
    if (!isRecord(ref) || !isRecord(argument))
      throw invalidParams('A completion needs the objects "ref" and "argument".')
    const lookup = { ...callWait(request.params, peer), operation: 'complete' } as const
    const served = await resolveCompletionReference(this.#access.view(caller), ref, lookup)
    const { uri } = served
    const rest = unhandledParams(request, handledOfCompletion)
    const input = { arguments: completionArguments(request), uri, meta: metaOf(request), ...rest }
    return this.#encode(await this.#run(this.#access.complete, served, input, caller, peer))
  }

  async #relayTask(request: CallRequest, caller: Caller, peer: CallPeer): Promise<Pieces> {
    const { method } = request
    const task = readTaskId(textParam(request.params, 'taskId'))
    if (task === undefined) throw invalidParams('Task not found: use a "taskId" from an earlier result.')
    const lookup = { ...callWait(request.params, peer), operation: method }
    const served = await this.#access.view(caller).find('tool', task.server, task.tool, lookup)
    const input = { arguments: Json.of({}), meta: metaOf(request), ...unhandledParams(request, handledOfTask) }
    const relay: Handler = (call) => this.#access.relay(method, { ...call, timeoutMs: maxTaskMs })
    return this.#encode(await this.#run(relay, served, input, caller, peer))
  }

  #run(
    handler: Handler,
    { entry }: Served,
    input: Input,
    caller: Caller,
    peer: CallPeer,
    admit?: Call['admit'],
  ): Promise<Result> {
    // A call id with 62 random bits. randomUUID is fast because it takes random bytes from a pool.
    const id = randomUUID().slice(19)
    const answer = handler({ id, caller, entry, input, signal: peer.signal, peer, admit, resultShare: 1 })
    // A call that runs other calls reports the failure of each.
    return entry.traits.carries || !('missingCapability' in peer) ? answer : orMissing(answer, peer)
  }
}

type CallRequest = ReceivedParams & Pick<InboundRequest, 'method'>

interface Introduction {
  readonly instructions: string | undefined
  /** Whether to tell what is known, without waiting for servers. */
  readonly isImmediate: boolean | undefined
}

/** The call's answer or, if it is a consequence of a refused question, the error for the missing capability. */
const orMissing = (answer: Promise<Result>, peer: CallPeer): Promise<Result> =>
  answer.then(
    (result) => {
      const refusal = result.isError ? peer.missingCapability : undefined
      if (refusal !== undefined) throw refusal
      return result
    },
    (thrown: unknown) => {
      // Other failures are not consequences of the refusal, and say more: a call that timed out may have taken effect.
      const isConsequence = thrown instanceof ServerError || thrown instanceof UnsupportedRequest
      throw (isConsequence && peer.missingCapability) || thrown
    },
  )

const maxTaskMs = 24 * 3_600_000

/** How a call waits for a server that is still starting. Reports progress if the caller requested it. */
const callWait = (params: Params, peer: CallPeer): Wait => ({
  signal: peer.signal,
  progress: (waitedMs, servers) => notifyWaiting(object(params, '_meta'), peer, waitedMs, servers),
})

function resolveCompletionReference(view: View, ref: Params, lookup: LookupOptions): Promise<Served> {
  if (ref.type === 'ref/prompt') return view.resolve('prompt', textParam(ref, 'name'), lookup)
  if (ref.type === 'ref/resource') return view.resolve('resource', textParam(ref, 'uri'), lookup)
  throw invalidParams('The "type" of "ref" must be "ref/prompt" or "ref/resource".')
}

/** Converts the error for an invalid cursor: the request is malformed, not denied. */
function pageOrRefuse<T>(page: () => T): T {
  try {
    return page()
  } catch (thrown) {
    if (!(thrown instanceof ToolwayError) || thrown.code !== 'INVALID_ARGUMENTS') throw thrown
    throw new ProtocolError(rpcCodes.params, thrown.message, thrown.data)
  }
}

const namedInput = (received: ReceivedParams): Input => ({
  arguments: argumentsOf(received),
  meta: metaOf(received),
  ...unhandledParams(received, handledOfNamed),
})

export function argumentsOf(received: ReceivedParams): Input['arguments'] {
  const value = object(received.params, 'arguments')
  return value === received.params.arguments ? (memberOf(received, 'arguments') as Input['arguments']) : Json.of(value)
}

/** A completion request's arguments, built from the original bytes. */
function completionArguments(received: ReceivedParams): Input['arguments'] {
  const { argument, context } = received.params
  const pieces = [Buffer.from('{"argument":'), memberOf(received, 'argument').bytes]
  if (context !== undefined) pieces.push(Buffer.from(',"context":'), memberOf(received, 'context').bytes)
  const value = context === undefined ? { argument } : { argument, context }
  return Json.read(value, Buffer.concat([...pieces, Buffer.from('}')]))
}

/** A request's `_meta` without the envelope's keys; parsed again if any key is unusual, to keep numbers exact. */
function metaOf(received: ReceivedParams): Readonly<Record<string, unknown>> {
  const meta = withoutEnvelope(object(received.params, '_meta'))
  for (const key in meta) {
    if (everyday.has(key)) continue
    return withoutEnvelope(memberOf(received, '_meta').exact as Record<string, unknown>)
  }
  return meta
}

const everyday: ReadonlySet<string> = new Set(['progressToken', 'traceparent', 'tracestate', 'dev.toolway/agent'])

/** For each operation, the members of params that the gateway handles. All other members are passed on unchanged. */
const handledOfNamed: ReadonlySet<string> = new Set(['name', 'arguments', '_meta'])
const handledOfTask: ReadonlySet<string> = new Set(['_meta'])
const handledOfRead: ReadonlySet<string> = new Set(['uri', '_meta'])
const handledOfCompletion: ReadonlySet<string> = new Set(['ref', 'argument', 'context', '_meta'])

function unhandledParams(received: ReceivedParams, understood: ReadonlySet<string>): Pick<Input, 'rest'> {
  const others: string[] = []
  for (const key in received.params) if (!understood.has(key)) others.push(key)
  return others.length === 0
    ? {}
    : { rest: Object.fromEntries(others.map((key) => [key, memberOf(received, key).exact])) }
}

function object(params: Params, field: string): Record<string, unknown> {
  const value = params[field] ?? {}
  if (!isRecord(value)) throw invalidParams(`"${field}" must be an object.`)
  return value
}

export function textParam(params: Params, field: string): string {
  const value = params[field]
  if (typeof value !== 'string' || value === '') throw invalidParams(`"${field}" must be a non-empty string.`)
  return value
}

const invalidParams = (message: string) => new ProtocolError(rpcCodes.params, message)

/** Replaces the URI in a server's error with the caller's spelling. Other bytes and other errors stay unchanged. */
function withRequestedUri(
  thrown: unknown,
  spelling: { readonly ofServer: string; readonly requested: string },
): unknown {
  const { ofServer, requested } = spelling
  if (!(thrown instanceof ServerError) || ofServer === requested) return thrown
  const { bytes } = thrown.error
  const data = members(bytes)?.get('data')
  const uri = data && members(data)?.get('uri')
  if (uri === undefined || uri[0] !== 0x22 || jsonValue(uri.toString('utf8')) !== ofServer) return thrown
  // `uri` is a slice of `bytes`, so the difference between their offsets is its position.
  const at = uri.byteOffset - bytes.byteOffset
  const replaced = [bytes.subarray(0, at), Buffer.from(JSON.stringify(requested)), bytes.subarray(at + uri.length)]
  return new ServerError(Json.raw<RpcErrorObject>(Buffer.concat(replaced)))
}

/** Where one request's messages are sent: the response to its POST, or the stdio stream. */
export interface ResponseChannel {
  /** The request's peer, which is cancelled if the client disconnects before the response is sent. */
  owner: { cancel(): void } | undefined
  /** Sends a message ahead of the response. Returns false if that is not possible. */
  send(message: Buffer): boolean
  abandon(): void
}

/** One request in flight. It can be cancelled, and until it is answered it can send messages to its caller. */
export class RequestPeer implements Peer {
  readonly #id: Id
  readonly #session: Session
  readonly #outlet: ResponseChannel
  readonly #progressToken: unknown
  readonly #controller = new AbortController()
  readonly signal: AbortSignal = this.#controller.signal
  #progress: CallProgress | undefined
  #over: AbortController | undefined
  #answered = false

  constructor(session: Session, request: InboundRequest, outlet: ResponseChannel) {
    const { _meta } = request.params
    this.#id = request.id
    this.#session = session
    this.#outlet = outlet
    this.#progressToken = isRecord(_meta) ? _meta.progressToken : undefined
    outlet.owner = this
    session.requests.set(request.id, this)
  }

  readonly rounds = false

  get logLevel(): LogLevel | undefined {
    return this.#session.logLevel
  }

  get request() {
    return { id: this.#id, revision: this.#session.revision }
  }

  cancel(): void {
    if (this.#answered) return
    this.#controller.abort(new ToolwayError('CANCELLED', 'The caller cancelled this call.'))
    this.answered()
    this.#outlet.abandon()
  }

  /** Marks the request as answered: notifications are then dropped and pending client requests cancelled. */
  answered(): void {
    if (this.#answered) return
    this.#answered = true
    this.#session.requests.take(this.#id)
    this.#over?.abort()
  }

  notify(method: string, params: Json): void {
    if (this.#answered || !wantsNotification(this.#session, method, params)) return
    if (method !== 'notifications/progress') {
      this.#outlet.send(notificationBytes(method, params))
      return
    }
    const token = this.#progressToken
    if (token === undefined) return
    this.#progress ??= new CallProgress()
    this.#outlet.send(notificationBytes(method, this.#progress.next(token, params)))
  }

  ask(method: string, params: Json, signal: AbortSignal): Promise<Json> {
    const refused = undeclaredRequest(this.#session, method)
    if (refused !== undefined) return Promise.reject(refused)
    this.#over ??= new AbortController()
    if (this.#answered) this.#over.abort()
    const waiting = AbortSignal.any([signal, this.#over.signal])
    return this.#session.clientRequests.ask((message) => this.#outlet.send(message), method, params, waiting)
  }
}

const maxTokenBytes = 256

/** Rejects progress tokens other than integers and short strings, because each notification repeats the token. */
export function checkProgressToken({ _meta }: Params): void {
  const token = isRecord(_meta) ? _meta.progressToken : undefined
  if (token === undefined || Number.isSafeInteger(token)) return
  if (typeof token === 'string' && Buffer.byteLength(token) <= maxTokenBytes) return
  const sentence = `"_meta.progressToken" must be a whole number, or text of at most ${maxTokenBytes} bytes.`
  throw new ProtocolError(rpcCodes.params, sentence)
}

/**
 * The progress notifications of one call. Toolway reports progress while a call waits, and MCP demands that the values
 * increase, so a server's value is raised if it is not above those that Toolway has sent. Other values are unchanged.
 */
export class CallProgress {
  #last = Number.NEGATIVE_INFINITY
  #waited = Number.NEGATIVE_INFINITY

  /** The notification for the caller, with the caller's token, because each hop has its own. */
  next(token: unknown, params: Json): Json {
    const sent = params.value as Params
    const progress = this.#increased(sent.progress, isWaitingNotice(params))
    if (sent.progressToken === token && sent.progress === progress) return params
    return Json.of({ ...sent, progress, progressToken: token })
  }

  #increased(progress: unknown, waits: boolean): unknown {
    if (typeof progress !== 'number') return progress
    const floor = waits ? this.#last : this.#waited
    const raised = progress > floor ? progress : floor + Math.max(1e-9, Math.abs(floor) * 1e-12)
    if (waits || raised !== progress) this.#waited = raised
    this.#last = raised
    return raised
  }
}

/** A peer that rejects every request for input, including requests for confirmation. */
export const nonInteractivePeer: Peer = {
  rounds: false,
  logLevel: undefined,
  notify() {},
  ask: () => Promise.reject(new ToolwayError('INVALID_ARGUMENTS', 'A chat over HTTP cannot ask for input.')),
}
