import { skillsExtension, tasksExtension, uiExtension } from '../core/call.ts'
import { latestLegacy, metaKeys, modernRevision } from './revisions.ts'

/*
 * Which members the protocol defines for each message, by revision and extension. Only these are interpreted and
 * forwarded (V1): otherwise, a server that ignores the case of names could find a second value that was not checked.
 */

/** The extensions that clients can use through Toolway. No others are announced to them (W5). */
export const servedExtensions: readonly string[] = [tasksExtension, uiExtension, skillsExtension]

/** In which messages a member is defined; by default, in all. */
export interface MemberRule {
  /** `since` is the first revision that has the member, `before` the first that no longer has it. */
  readonly since?: string
  readonly before?: string
  /** The member is also defined, in any revision, if both sides declared this extension. */
  readonly extension?: string
  /** Rules for the value; set if Toolway interprets it and it is an object or a list of objects. */
  readonly within?: MemberRules
}

/** Rules for one JSON object. Unknown members are kept if the object is `open`; otherwise they are removed. */
export interface MemberRules {
  readonly members: Readonly<Record<string, MemberRule>>
  readonly open?: true
  /** Known prefixes. An unknown member that misspells one of them is rejected. */
  readonly prefixes?: readonly string[]
  /** Rules for each value of an object whose names are arbitrary. */
  readonly each?: (value: object) => MemberRules
}

const any: MemberRule = {}

const level = (...names: readonly string[]): MemberRules => ({
  members: Object.fromEntries(names.map((name) => [name, any])),
})
const open = (members: Readonly<Record<string, MemberRule>>): MemberRules => ({ members, open: true })
const names = (...all: readonly string[]): MemberRules => open(level(...all).members)
/** Params or a result: these members, those with rules, and `_meta`. */
const message = (all: readonly string[], ruled: MemberRules['members'] = {}): MemberRules => ({
  members: { ...level(...all).members, ...ruled, _meta },
})

/** A request's `task` member: part of the protocol in one revision, and of an extension since then. */
const task: MemberRule = {
  since: latestLegacy,
  before: modernRevision,
  extension: tasksExtension,
  within: level('ttl', 'pollInterval'),
}

const capabilities = open({
  experimental: any,
  roots: { within: names('listChanged') },
  sampling: { within: names('context', 'tools') },
  elicitation: { within: names('form', 'url') },
  tasks: {
    within: open({
      list: any,
      cancel: any,
      requests: {
        within: open({
          sampling: { within: names('createMessage') },
          elicitation: { within: names('create') },
        }),
      },
    }),
  },
  extensions: { within: names(...servedExtensions) },
})

const implementation = names('name', 'title', 'version', 'description', 'icons', 'websiteUrl')

const _meta: MemberRule = {
  within: {
    open: true,
    prefixes: ['io.modelcontextprotocol/', 'dev.toolway/'],
    members: {
      ...level('progressToken', 'traceparent', 'tracestate', 'baggage', 'dev.toolway/agent', 'dev.toolway/cache')
        .members,
      ...level(metaKeys.protocolVersion, metaKeys.logLevel, metaKeys.subscriptionId, metaKeys.serverInfo).members,
      [metaKeys.clientCapabilities]: { within: capabilities },
      [metaKeys.clientInfo]: { within: implementation },
      'io.modelcontextprotocol/related-task': { within: names('taskId') },
    },
  },
}

const contentBlock = names(
  ...['type', 'text', 'data', 'mimeType', 'annotations', '_meta', 'uri', 'name', 'title', 'description', 'size'],
  ...['resource', 'blob', 'icons', 'id', 'input', 'toolUseId', 'content', 'structuredContent', 'isError'],
)

const taskState = ['taskId', 'status', 'statusMessage', 'createdAt', 'lastUpdatedAt', 'ttl', 'pollInterval']

/** The `task` member in a client's response, if the server asked the client to start a task. */
const startedTask: MemberRule = { since: latestLegacy, before: modernRevision, within: level(...taskState) }
const resultType: MemberRule = { since: modernRevision }

const sampled = message(['model', 'role', 'stopReason'], {
  content: { within: contentBlock },
  task: startedTask,
  resultType,
}).members
const elicited = message(['action', 'content'], { task: startedTask, resultType }).members
const listedRoots = message([], { roots: { within: level('uri', 'name', '_meta') }, resultType }).members

/** The results that clients send to servers, by method. */
export const answers: Readonly<Record<string, MemberRules>> = {
  'sampling/createMessage': { members: sampled },
  'elicitation/create': { members: elicited },
  'roots/list': { members: listedRoots },
  'tasks/get': message(taskState),
  'tasks/cancel': message(taskState),
  'tasks/list': message(['nextCursor'], { tasks: { within: level(...taskState) } }),
  'tasks/result': { members: { ...sampled, ...elicited } },
}

const anything: MemberRules = { members: {}, open: true }

/** Rules for a result in a follow-up request, where only its members show which method it belongs to. */
function answerLevel(answer: object): MemberRules {
  // A whole message in place of a result does not count as a response: the server will send its request again.
  if ('method' in answer && 'result' in answer) return anything
  if ('action' in answer) return { members: elicited }
  return { members: 'roots' in answer ? listedRoots : unmarked }
}

/** A result with neither `action` nor `roots` is a sampling result, unless it misspells one of those names. */
const unmarked: MemberRules['members'] = { ...elicited, ...listedRoots, ...sampled }

export const errorMembers: MemberRules = level('code', 'message', 'data')

const rounds: MemberRules['members'] = {
  inputResponses: { since: modernRevision, within: { ...anything, each: answerLevel } },
  requestState: { since: modernRevision },
}
const page = message(['cursor'])
const nothing = message([])
const aboutUri = message(['uri'])
const aboutTask = message(['taskId'])

/** Params of notifications that both sides send. */
const sharedNotifications = {
  'notifications/cancelled': message(['requestId', 'reason']),
  'notifications/progress': message(['progressToken', 'progress', 'total', 'message']),
  'notifications/tasks/status': message(taskState),
}

/** Params of requests and notifications from clients. */
export const clientMessages: Readonly<Record<string, MemberRules>> = {
  ...sharedNotifications,
  initialize: message(['protocolVersion'], {
    capabilities: { within: capabilities },
    clientInfo: { within: implementation },
  }),
  ping: nothing,
  'server/discover': nothing,
  'tools/list': page,
  'resources/list': page,
  'resources/templates/list': page,
  'prompts/list': page,
  'skills/list': page,
  'skills/get': aboutUri,
  'tasks/list': page,
  'tools/call': message(['name', 'arguments'], { task, ...rounds }),
  'prompts/get': message(['name', 'arguments'], rounds),
  'resources/read': message(['uri'], rounds),
  'resources/subscribe': aboutUri,
  'resources/unsubscribe': aboutUri,
  'resources/directory/read': message(['uri', 'cursor']),
  'completion/complete': message([], {
    ref: { within: level('type', 'name', 'title', 'uri') },
    argument: { within: level('name', 'value') },
    context: { since: '2025-06-18', within: level('arguments') },
  }),
  'logging/setLevel': message(['level']),
  'subscriptions/listen': message([], {
    notifications: {
      within: names(
        ...['toolsListChanged', 'promptsListChanged', 'resourcesListChanged', 'resourceSubscriptions', 'taskIds'],
      ),
    },
  }),
  'tasks/get': aboutTask,
  'tasks/result': aboutTask,
  'tasks/cancel': aboutTask,
  'tasks/update': message(['taskId'], rounds),
  'notifications/initialized': nothing,
  'notifications/roots/list_changed': nothing,
}

const samplingParams = [
  ...['messages', 'modelPreferences', 'systemPrompt', 'includeContext', 'temperature', 'maxTokens'],
  ...['stopSequences', 'metadata', 'tools', 'toolChoice'],
]

/** Params of requests from servers. Requests with any other method are rejected. */
export const serverRequests: Readonly<Record<string, MemberRules>> = {
  'sampling/createMessage': message(samplingParams, { task }),
  'elicitation/create': message(['mode', 'message', 'requestedSchema', 'url', 'elicitationId'], { task }),
  'roots/list': nothing,
  'tasks/get': aboutTask,
  'tasks/result': aboutTask,
  'tasks/cancel': aboutTask,
  'tasks/list': page,
}

/** Params of notifications from servers. Notifications with any other method are dropped. */
export const serverNotifications: Readonly<Record<string, MemberRules>> = {
  ...sharedNotifications,
  'notifications/message': message(['level', 'logger', 'data']),
  'notifications/elicitation/complete': message(['elicitationId']),
  'notifications/resources/updated': message(['uri', 'title']),
  'notifications/resources/list_changed': nothing,
  'notifications/tools/list_changed': nothing,
  'notifications/prompts/list_changed': nothing,
  'notifications/subscriptions/acknowledged': message(['notifications']),
}

export const envelopeMembers: MemberRules = level('jsonrpc', 'id', 'method', 'params', 'result', 'error')

/** The capability that a client must declare to receive a request, by method. */
export const capabilityFor: ReadonlyMap<string, string> = new Map([
  ['sampling/createMessage', 'sampling'],
  ['elicitation/create', 'elicitation'],
  ['roots/list', 'roots'],
  ['tasks/get', 'tasks'],
  ['tasks/result', 'tasks'],
  ['tasks/cancel', 'tasks'],
  ['tasks/list', 'tasks'],
])

/** Whether `inputRequests` may contain this method. */
export const isInputRequest = (method: unknown): method is string =>
  method === 'sampling/createMessage' || method === 'elicitation/create' || method === 'roots/list'

/** Rules for a result that requires input. Unknown members are kept. */
export const inputRequired: MemberRules = open({
  resultType: any,
  requestState: any,
  inputRequests: {
    within: {
      ...anything,
      each: (question) => {
        const { method } = question as { readonly method?: unknown }
        const params = isInputRequest(method) ? { within: serverRequests[method] as MemberRules } : any
        return { members: { method: any, params } }
      },
    },
  },
})
