import type { Access } from '../../core/access.ts'
import { type Caller, callerKey, type LogLevel, type Peer } from '../../core/call.ts'
import type { Kind } from '../../core/entry.ts'
import { ServerError, ToolwayError, UnsupportedRequest } from '../../core/errors.ts'
import type { ExposureSetting } from '../../core/exposure.ts'
import type { Budget, Budgets } from '../../core/limits/budget.ts'
import { fixedLimits } from '../../core/limits/fixed-limits.ts'
import type { Log } from '../../core/log.ts'
import { Json } from '../../json/json.ts'
import { jsonValue } from '../../json/parse-json.ts'
import { InFlight } from '../../lib/in-flight.ts'
import { asRecord, isRecord } from '../../lib/is-record.ts'
import { AmbiguousMember, definedBytes, type Scope } from '../../wire/check-members.ts'
import { answers, capabilityFor, errorMembers, type MemberRules } from '../../wire/defined-members.ts'
import { type Id, notificationBytes, requestBytes } from '../../wire/message.ts'
import { isLogLevel, meetsLogLevel } from '../calls/client-capabilities.ts'
import { ProtocolError, rpcCodes } from '../errors.ts'
import type { InboundResponse, Params } from '../inbound-message.ts'

export interface SessionClient {
  /** The name of the client program, if it sent one. */
  readonly name?: string | undefined
  readonly revision: string
  readonly capabilities: Params
}

/**
 * Sends a message that is unrelated to any request; `onCalls` means that calls may be waiting for the client's response,
 * so the message may be sent on their streams. Returns false if the client is unreachable.
 */
type Tell = (message: Buffer, onCalls?: boolean) => boolean

export interface SessionOptions {
  readonly access: Access
  readonly caller: Caller
  readonly client: SessionClient
  readonly budgets: Pick<Budgets, 'questions' | 'subscriptions'>
  readonly log: Log
}

/** A legacy protocol session, over HTTP or stdio. It ends when it is disposed of. */
export class Session implements SessionClient, Disposable {
  readonly revision: string
  readonly capabilities: Params
  readonly caller: Caller
  readonly requests = new InFlight<Id, { cancel(): void }>()
  readonly clientRequests: PendingClientRequests
  readonly subscriptions: ResourceSubscriptions
  /** For messages to the client that are unrelated to any request. */
  readonly peer: Peer
  /** The minimum level of log messages; undefined until the client sets it. */
  logLevel: LogLevel | undefined
  readonly #access: Access
  readonly #ended = new AbortController()

  constructor({ access, caller, client, budgets, log }: SessionOptions, tell: Tell) {
    this.revision = client.revision
    this.capabilities = client.capabilities
    this.#access = access
    this.peer = createSessionPeer(this, tell, this.#ended.signal)
    this.caller = { ...caller, capabilities: client.capabilities, client: client.name, peer: this.peer }
    const { principal } = caller
    this.clientRequests = new PendingClientRequests({ scope: client, principal, budget: budgets.questions, log })
    const budget = budgets.subscriptions
    this.subscriptions = new ResourceSubscriptions({ access, caller: this.caller, budget, log, tell })
  }

  get ended(): AbortSignal {
    return this.#ended.signal
  }

  [Symbol.dispose](): void {
    for (const request of this.requests.values()) request.cancel()
    this.subscriptions[Symbol.dispose]()
    this.#ended.abort()
    this.#access.sessionEnded(this.caller)
  }
}

type SerializedSession = Pick<Session, 'revision' | 'capabilities' | 'caller' | 'logLevel' | 'subscriptions'>

/** Serializes what another replica needs to take over a session. Streams and running calls are lost. */
export function serializeSession(session: SerializedSession): string {
  const { revision, capabilities, caller, logLevel, subscriptions } = session
  const { principal, asked, exposure } = caller
  const client = { revision, capabilities, name: caller.client }
  const following = subscriptions.all().map((one) => (one.asked === asked ? one.uri : one))
  return JSON.stringify({ client, principal, asked, exposure, logLevel, subscriptions: following })
}

export function parseSessionRecord(text: string) {
  try {
    const { client, principal, asked, exposure, logLevel, subscriptions } = jsonValue(text) as Params
    if (!isRecord(client) || typeof client.revision !== 'string' || typeof principal !== 'string') return undefined
    return {
      client: {
        revision: client.revision,
        capabilities: isRecord(client.capabilities) ? client.capabilities : {},
        name: typeof client.name === 'string' ? client.name : undefined,
      },
      // Written by another replica of this gateway, from a checked request.
      exposure: exposure as ExposureSetting | undefined,
      principal,
      asked: typeof asked === 'string' ? asked : undefined,
      logLevel: isLogLevel(logLevel) ? logLevel : undefined,
      subscriptions: Array.isArray(subscriptions) ? subscriptions.flatMap(subscriptionIn) : [],
    }
  } catch {
    return undefined
  }
}

/** A subscription in a session's record: a URI, or an object if the request named another agent than the session. */
function subscriptionIn(written: unknown): { uri: string; asked: string | undefined } | [] {
  const { uri, asked } = typeof written === 'string' ? { uri: written } : asRecord(written)
  return typeof uri === 'string' ? { uri, asked: typeof asked === 'string' ? asked : undefined } : []
}

type ClientState = Pick<Session, 'capabilities' | 'clientRequests' | 'logLevel'>

/** A peer for messages that are unrelated to any request. Its own requests are cancelled when the session ends. */
export const createSessionPeer = (session: ClientState, tell: Tell, ended: AbortSignal): Peer => ({
  rounds: false,
  get logLevel() {
    return session.logLevel
  },
  notify(method, params) {
    if (wantsNotification(session, method, params)) tell(notificationBytes(method, params))
  },
  ask(method, params, signal) {
    const refused = undeclaredRequest(session, method)
    if (refused !== undefined) return Promise.reject(refused)
    // The server may have asked during any of the client's calls, and that call waits for the response.
    const send = (message: Buffer) => tell(message, true)
    return session.clientRequests.ask(send, method, params, AbortSignal.any([signal, ended]))
  },
})

/** Whether to send a notification to a client. A client that has not set a log level gets all log messages. */
export const wantsNotification = ({ logLevel }: ClientState, method: string, params: Json): boolean =>
  method !== 'notifications/message' || logLevel === undefined || meetsLogLevel(logLevel, params)

/** Returns the reason why a request must not be sent to this client; undefined if sending it is allowed. */
export function undeclaredRequest(listener: ClientState, method: string): ToolwayError | undefined {
  const capability = capabilityFor.get(method)
  if (capability === undefined) return new UnsupportedRequest(`MCP does not define a ${method} request to clients.`)
  if (listener.capabilities[capability] !== undefined) return undefined
  const sentence = `Cannot send ${method} to the caller's client: it did not declare the capability "${capability}".`
  return new UnsupportedRequest(sentence)
}

const resourcesChanged = notificationBytes('notifications/resources/list_changed')

/** The notification for each kind of list. MCP announces changes to templates as changes to resources; skills are resources. */
const listChangedByKind: Readonly<Record<Kind, Buffer>> = {
  tool: notificationBytes('notifications/tools/list_changed'),
  resource: resourcesChanged,
  template: resourcesChanged,
  skill: resourcesChanged,
  prompt: notificationBytes('notifications/prompts/list_changed'),
}

/** The notifications for changed lists. They are always the same buffers, so that a set keeps each only once. */
export const listChangedNotifications = (kinds: ReadonlySet<Kind>): ReadonlySet<Buffer> =>
  new Set([...kinds].map((kind) => listChangedByKind[kind]))

interface PendingClientRequest {
  readonly method: string
  resolve(result: Json): void
  reject(error: Error): void
}

const maxClientRequests = fixedLimits.clientQuestions.value

interface ClientRequestOptions {
  readonly scope: Scope
  readonly principal: string
  readonly budget: Budget
  readonly log: Log
}

/** The unanswered requests to one client. They are kept per session, so no client can answer another's requests. */
class PendingClientRequests {
  readonly #options: ClientRequestOptions
  readonly #waiting = new Map<string, PendingClientRequest>()
  #count = 0

  constructor(options: ClientRequestOptions) {
    this.#options = options
  }

  /** Sends a request. Rejects with a ServerError if the client returns an error, otherwise with a ToolwayError. */
  async ask(send: (message: Buffer) => boolean, method: string, params: Json, signal: AbortSignal): Promise<Json> {
    const { principal, budget } = this.#options
    if (signal.aborted) throw callEnded(method)
    if (this.#waiting.size >= maxClientRequests) {
      const sentence = `The client already has ${maxClientRequests} unanswered requests: try again when it has answered some.`
      throw new ToolwayError('OVERLOADED', sentence)
    }
    budget.claim(principal)
    const id = `ask-${++this.#count}`
    const { promise, resolve, reject } = Promise.withResolvers<Json>()
    const abort = () => {
      if (!this.#waiting.delete(id)) return
      send(notificationBytes('notifications/cancelled', Json.of({ requestId: id })))
      reject(callEnded(method))
    }
    this.#waiting.set(id, { method, resolve, reject })
    signal.addEventListener('abort', abort)
    try {
      if (!send(requestBytes(id, method, params))) throw clientUnreachable(method)
      return await promise
    } finally {
      signal.removeEventListener('abort', abort)
      this.#waiting.delete(id)
      budget.give(principal)
    }
  }

  /** Passes a client's response to the waiting call. An ambiguous response is rejected; the reason is returned. */
  settle({ id, result, error }: InboundResponse): string | undefined {
    // All ids that the gateway sends are strings, so a numeric id is unknown.
    const found = typeof id === 'string' ? this.#waiting.get(id) : undefined
    if (found === undefined) return undefined
    this.#waiting.delete(id as string)
    const { scope, log } = this.#options
    const { method } = found
    const leftOut: string[] = []
    try {
      if (result !== undefined) {
        found.resolve(Json.raw(definedBytes(result.bytes, answers[method] ?? emptyAnswer, scope, leftOut)))
      } else if (error !== undefined) {
        found.reject(new ServerError(Json.raw(definedBytes(error.bytes, errorMembers, scope, leftOut))))
      }
    } catch (thrown) {
      if (!(thrown instanceof AmbiguousMember)) throw thrown
      found.reject(new ToolwayError('INVALID_ARGUMENTS', `The client's response to ${method}: ${thrown.message}`))
      return thrown.message
    }
    if (leftOut.length > 0) {
      const members = leftOut.slice(0, 10)
      log.debug({ method, members }, "dropped unknown members of a client's response")
    }
    return undefined
  }
}

const emptyAnswer: MemberRules = { members: {} }

export const callEnded = (method: string) =>
  new ToolwayError('CANCELLED', `The call that requested ${method} from its client has ended.`)

const clientUnreachable = (method: string) =>
  new ToolwayError(
    'CANCELLED',
    `Cannot send ${method} to the client: it has disconnected, or does not accept an event stream.`,
  )

interface ActiveSubscription {
  readonly uri: string
  readonly asked: string | undefined
  readonly begun: Promise<AsyncDisposable>
  over: boolean
}

const maxFollowed = fixedLimits.sessionSubscriptions.value
const maxUriLength = 8_192

interface SubscriptionOptions {
  readonly access: Access
  readonly caller: Caller
  readonly budget: Budget
  readonly log: Log
  /** Sends a notification. All updates to a resource use the same buffer, so a pending one is not sent twice. */
  tell(message: Buffer): void
  readonly news?: (uri: string) => Buffer
}

/** The resources that a session is subscribed to, by caller and by the URI that the client used. */
export class ResourceSubscriptions implements Disposable {
  readonly #options: Required<SubscriptionOptions>
  readonly #followed = new Map<string, ActiveSubscription>()

  constructor(options: SubscriptionOptions) {
    this.#options = { news: resourceUpdated, ...options }
  }

  /** Renews a subscription made at another replica, and notifies the client, which may have missed updates. */
  async resume(uri: string, acting: Caller): Promise<void> {
    const { tell, news } = this.#options
    await this.add(uri, acting)
    if (this.#followed.has(subscriptionKey(uri, acting))) tell(news(uri))
  }

  /** Subscribes to a resource once. `acting` is the session's caller, possibly acting as another agent. */
  async add(uri: string, acting: Caller = this.#options.caller): Promise<void> {
    const key = subscriptionKey(uri, acting)
    const known = this.#followed.get(key)
    if (known !== undefined) {
      await known.begun
      return
    }
    if (uri.length > maxUriLength) {
      throw new ProtocolError(rpcCodes.params, `Cannot subscribe to a URI longer than ${maxUriLength} characters.`)
    }
    if (this.#followed.size >= maxFollowed) {
      const sentence = `This session has ${maxFollowed} subscriptions: unsubscribe from some of them first.`
      throw new ToolwayError('OVERLOADED', sentence)
    }
    const { caller, budget } = this.#options
    budget.claim(caller.principal)
    const begun = this.#begin(uri, acting, () => following)
    const following: ActiveSubscription = { uri, asked: acting.asked, begun, over: false }
    this.#followed.set(key, following)
    try {
      await begun
    } catch (thrown) {
      if (this.#followed.get(key) === following) this.#forget(key)
      throw thrown
    }
  }

  remove(uri: string, acting: Caller = this.#options.caller): void {
    const key = subscriptionKey(uri, acting)
    const following = this.#followed.get(key)
    if (following) this.#stop(key, following)
  }

  /** The subscriptions, each with the agent that its caller asked for. */
  all() {
    return [...this.#followed.values()].map(({ uri, asked }) => ({ uri, asked }))
  }

  async #begin(uri: string, caller: Caller, following: () => ActiveSubscription): Promise<AsyncDisposable> {
    const { access, tell, news } = this.#options
    const served = await access.view(caller).resolve('resource', uri, { operation: 'subscribe' })
    const message = news(uri)
    return access.subscribe(caller, served, () => {
      if (!following().over) tell(message)
    })
  }

  #forget(key: string): void {
    if (this.#followed.delete(key)) this.#options.budget.give(this.#options.caller.principal)
  }

  #stop(key: string, following: ActiveSubscription): void {
    this.#forget(key)
    following.over = true
    following.begun
      .then((subscription) => subscription[Symbol.asyncDispose]())
      // Ignore the failure: the client gets no more updates in any case, even if the server still sends them.
      .catch((err: unknown) => this.#options.log.debug({ err }, 'cannot unsubscribe from a resource on the server'))
  }

  [Symbol.dispose](): void {
    for (const [key, following] of this.#followed) this.#stop(key, following)
  }
}

const subscriptionKey = (uri: string, acting: Caller): string => `${callerKey(acting)}\n${uri}`

const resourceUpdated = (uri: string): Buffer => notificationBytes('notifications/resources/updated', Json.of({ uri }))
