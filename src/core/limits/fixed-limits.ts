import { maxDepth } from '../../json/json-text.ts'

/** A bound that callers and servers can meet and that no setting changes. docs/operations/limits.md lists them all. */
export interface FixedLimit {
  readonly value: number
  /** Without a unit, the value is a number of what is bounded. */
  readonly unit?: 'bytes' | 'ms' | 'characters' | 'levels'
  /** What is bounded. */
  readonly what: string
  /** What happens beyond the bound, in Markdown. */
  readonly beyond: string
}

const KiB = 1024
const MiB = 1024 * KiB
const minute = 60_000

const fails = 'the call fails'
const isLeftOut = 'the rest is left out'

/** The fixed limits, by topic. A large base64 image fits into a message, runaway output does not. */
export const fixedLimits = {
  messageBytes: { value: 16 * MiB, unit: 'bytes', what: 'a message from a server', beyond: 'the request fails' },
  messageDepth: { value: maxDepth, unit: 'levels', what: 'nesting of a message', beyond: 'the request fails' },
  messageValues: {
    value: 100_000,
    what: 'values in a message other than a result',
    beyond: `${fails}; notifications are dropped`,
  },
  resultValues: { value: 1_000_000, what: 'values in a result', beyond: fails },
  resultBlocks: { value: 20_000, what: 'content blocks in a result', beyond: fails },

  listPages: { value: 1_000, what: 'pages of a list', beyond: isLeftOut },
  cursorBytes: { value: 16 * KiB, unit: 'bytes', what: 'the cursor of a list', beyond: isLeftOut },
  definitionBytes: { value: 256 * KiB, unit: 'bytes', what: 'a definition in a list', beyond: 'it is left out' },
  definitionValues: { value: 20_000, what: 'values in a definition', beyond: 'it is left out' },
  definitionDepth: { value: 60, unit: 'levels', what: 'nesting of a definition', beyond: 'it is left out' },
  descriptionCharacters: {
    value: 64 * KiB,
    unit: 'characters',
    what: 'a description in a list',
    beyond: 'it is shortened',
  },
  titleCharacters: { value: 1_024, unit: 'characters', what: 'a title in a list', beyond: 'it is shortened' },

  serverConnections: { value: 1_024, what: 'connections to a server over HTTP', beyond: 'requests fail' },
  serverRequests: { value: 256, what: 'open requests of a server, per connection', beyond: 'the server gets an error' },
  inputRequests: { value: 32, what: 'requests for input in one result', beyond: fails },
  inputRounds: {
    value: 16,
    what: 'rounds of requests for input in one call, for clients with sessions',
    beyond: fails,
  },
  requestStateBytes: { value: MiB, unit: 'bytes', what: "the `requestState` of a server's result", beyond: fails },
  taskIdCharacters: { value: 2_048, unit: 'characters', what: "the id of a server's task", beyond: fails },

  queueMs: {
    value: 5_000,
    unit: 'ms',
    what: "a call in the queue, or half of the call's timeout if that is shorter",
    beyond: '`OVERLOADED`',
  },
  suspendedMs: {
    value: 10 * minute,
    unit: 'ms',
    what: 'a call that waits for the next request of its client',
    beyond: 'it is cancelled',
  },
  refusals: {
    value: 600,
    what: 'refusals of one caller that are recorded at once',
    beyond: 'they are counted, and get `RATE_LIMITED`',
  },
  refusalsPerMinute: { value: 600, what: 'refusals of one caller that are recorded per minute', beyond: 'the same' },
  executeToolsCalls: { value: 64, what: 'calls in one `execute_tools`', beyond: '`INVALID_ARGUMENTS`' },
  executeToolsBytes: {
    value: 16 * MiB,
    unit: 'bytes',
    what: 'the results of one `execute_tools`, as object and as text',
    beyond: 'those that do not fit are replaced with an error',
  },
  chatTools: { value: 128, what: 'tools of the client in a chat request', beyond: 'HTTP 400' },
  modelQueue: { value: 16, what: 'requests that wait for one GGUF model', beyond: '`OVERLOADED`' },
  auditArgumentCharacters: {
    value: 16 * KiB,
    unit: 'characters',
    what: 'arguments in the audit log',
    beyond: 'they are truncated and hashed',
  },

  sessionIdleMs: { value: 60 * minute, unit: 'ms', what: 'a session without requests', beyond: 'it ends' },
  sessionSubscriptions: { value: 1_000, what: 'subscriptions of one session', beyond: '`OVERLOADED`' },
  storedMessages: {
    value: 1_000,
    what: 'messages of one session for a client that reconnects',
    beyond: 'the oldest are dropped',
  },
  storedBytes: { value: MiB, unit: 'bytes', what: 'those messages', beyond: 'the oldest are dropped' },
  unreadBytes: {
    value: MiB,
    unit: 'bytes',
    what: 'data of one stream that its client does not read',
    beyond: 'the connection is closed',
  },
  clientQuestions: { value: 64, what: 'unanswered requests to one client', beyond: 'the server gets an error' },
  capabilityCharacters: {
    value: 4_096,
    unit: 'characters',
    what: 'the capabilities that a client declares',
    beyond: 'the request is refused',
  },
  adminReads: { value: 4, what: 'reads of one caller in the admin API that run at a time', beyond: 'they wait' },
} satisfies Readonly<Record<string, FixedLimit>>
