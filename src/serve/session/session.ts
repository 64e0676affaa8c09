import type { Access } from '../../core/access.ts'
import type { Caller, LogLevel, Peer } from '../../core/call.ts'
import type { Kind } from '../../core/entry.ts'
import { type ToolwayError, UnsupportedRequest } from '../../core/errors.ts'
import type { Budgets } from '../../core/limits/budgets.ts'
import type { Log } from '../../core/log.ts'
import type { Json } from '../../json/json.ts'
import { jsonValue } from '../../json/parse-json.ts'
import { asRecord, isRecord } from '../../lib/is-record.ts'
import { capabilityFor } from '../../wire/defined-members.ts'
import { type Id, notificationBytes } from '../../wire/message.ts'
import { isLogLevel, meetsLogLevel } from '../calls/client-capabilities.ts'
import { createPendingClientRequests, type PendingClientRequests } from '../calls/pending-client-requests.ts'
import type { Params } from '../inbound-message.ts'
import { createResourceSubscriptions, type SessionSubscriptions } from './subscriptions.ts'

export interface SessionClient {
  readonly revision: string
  readonly capabilities: Params
}

/** A legacy protocol session, over HTTP or stdio. It ends when it is disposed of. */
export interface Session extends SessionClient, Disposable {
  readonly caller: Caller
  readonly ended: AbortSignal
  readonly requests: Map<Id, { cancel(): void }>
  readonly clientRequests: PendingClientRequests
  readonly subscriptions: SessionSubscriptions
  /** For messages to the client that are unrelated to any request. */
  readonly peer: Peer
  /** The minimum level of log messages; undefined until the client sets it. */
  logLevel: LogLevel | undefined
}

/**
 * Sends a message that is unrelated to any request; `onCalls` means that calls may be waiting for the client's response,
 * so the message may be sent on their streams. Returns false if the client is unreachable.
 */
type Tell = (message: Buffer, onCalls?: boolean) => boolean

export function createSession(options: {
  readonly access: Access
  readonly caller: Caller
  readonly client: SessionClient
  readonly budgets: Pick<Budgets, 'questions' | 'subscriptions'>
  readonly log: Log
  readonly tell: Tell
}): Session {
  const { access, client, budgets, log, tell } = options
  const ended = new AbortController()
  const peer = createSessionPeer(() => session, tell, ended.signal)
  const caller: Caller = { ...options.caller, capabilities: client.capabilities, peer }
  const session: Session = {
    ...client,
    caller,
    ended: ended.signal,
    requests: new Map(),
    clientRequests: createPendingClientRequests(client, {
      principal: caller.principal,
      questions: budgets.questions,
      log,
    }),
    subscriptions: createResourceSubscriptions({ access, caller, budget: budgets.subscriptions, log, tell }),
    peer,
    logLevel: undefined,
    [Symbol.dispose]() {
      for (const request of session.requests.values()) request.cancel()
      session.subscriptions[Symbol.dispose]()
      ended.abort()
      access.sessionEnded(caller)
    },
  }
  return session
}

/** Serializes what another replica needs to take over a session. Streams and running calls are lost. */
export function serializeSession({ revision, capabilities, caller, logLevel, subscriptions }: Session): string {
  const { principal, asked } = caller
  const client = { revision, capabilities }
  const following = subscriptions.all().map((one) => (one.asked === asked ? one.uri : one))
  return JSON.stringify({ client, principal, asked, logLevel, subscriptions: following })
}

export function parseSessionRecord(text: string) {
  try {
    const { client, principal, asked, logLevel, subscriptions } = jsonValue(text) as Params
    if (!isRecord(client) || typeof client.revision !== 'string' || typeof principal !== 'string') return undefined
    return {
      client: { revision: client.revision, capabilities: isRecord(client.capabilities) ? client.capabilities : {} },
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
export const createSessionPeer = (session: () => ClientState, tell: Tell, ended: AbortSignal): Peer => ({
  rounds: false,
  get logLevel() {
    return session().logLevel
  },
  notify(method, params) {
    if (wantsNotification(session(), method, params)) tell(notificationBytes(method, params))
  },
  ask(method, params, signal) {
    const refused = undeclaredRequest(session(), method)
    if (refused !== undefined) return Promise.reject(refused)
    // The server may have asked during any of the client's calls, and that call waits for the response.
    const send = (message: Buffer) => tell(message, true)
    return session().clientRequests.ask(send, method, params, AbortSignal.any([signal, ended]))
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

const tools = notificationBytes('notifications/tools/list_changed')
const resources = notificationBytes('notifications/resources/list_changed')
const prompts = notificationBytes('notifications/prompts/list_changed')

/** The notification for each kind of list. MCP announces changes to templates as changes to resources. */
const listChangedByKind: Readonly<Record<Kind, Buffer>> = {
  tool: tools,
  resource: resources,
  template: resources,
  prompt: prompts,
}

/** The notifications for changed lists. They are always the same buffers, so that a set keeps each only once. */
export const listChangedNotifications = (kinds: ReadonlySet<Kind>): ReadonlySet<Buffer> =>
  new Set([...kinds].map((kind) => listChangedByKind[kind]))
