import { maxDepth } from '../../json/json-text.ts'

/** A bound that callers and servers can meet and that no setting changes. docs/operations/limits.md lists them all. */
export interface FixedLimit {
  readonly value: number
  /** Without a unit, the value is a number of what is bounded. */
  readonly unit?: 'bytes' | 'ms' | 'characters' | 'levels' | undefined
  /** What is bounded. */
  readonly what: string
  /** What happens beyond the bound, in Markdown. */
  readonly beyond: string
}

const kibibytes = 1024
const mebibytes = 1024 * kibibytes
const minuteMs = 60_000

const limitIn =
  (unit?: FixedLimit['unit']) =>
  (value: number, what: string, beyond: string): FixedLimit => ({ value, unit, what, beyond })

const items = limitIn()
const bytes = limitIn('bytes')
const durationLimit = limitIn('ms')
const characters = limitIn('characters')
const levelLimit = limitIn('levels')

const fails = 'the call fails'
const isLeftOut = 'the rest is left out'

/** The fixed limits, by topic. A large base64 image fits into a message, runaway output does not. */
export const fixedLimits = {
  messageBytes: bytes(16 * mebibytes, 'a message from a server', 'the request fails'),
  messageDepth: levelLimit(maxDepth, 'nesting of a message', 'the request fails'),
  messageValues: items(100_000, 'values in a message other than a result', `${fails}; notifications are dropped`),
  resultValues: items(1_000_000, 'values in a result', fails),
  resultBlocks: items(20_000, 'content blocks in a result', fails),

  listPages: items(1_000, 'pages of a list', isLeftOut),
  cursorBytes: bytes(16 * kibibytes, 'the cursor of a list', isLeftOut),
  definitionBytes: bytes(256 * kibibytes, 'a definition in a list', 'it is left out'),
  definitionValues: items(20_000, 'values in a definition', 'it is left out'),
  definitionDepth: levelLimit(60, 'nesting of a definition', 'it is left out'),
  descriptionCharacters: characters(64 * kibibytes, 'a description in a list', 'it is shortened'),
  titleCharacters: characters(1_024, 'a title in a list', 'it is shortened'),
  skillFiles: items(512, 'files of a skill', 'it is left out'),
  skillBytes: bytes(16 * mebibytes, 'the files of a skill together', 'it is left out'),
  folderSkills: items(1_000, 'skills in one of `skills.folders`', isLeftOut),

  serverConnections: items(1_024, 'connections to a server over HTTP', 'requests fail'),
  serverRequests: items(256, 'open requests of a server, per connection', 'the server gets an error'),
  inputRequests: items(32, 'requests for input in one result', fails),
  inputRounds: items(16, 'rounds of requests for input in one call, for clients with sessions', fails),
  requestStateBytes: bytes(mebibytes, "the `requestState` of a server's result", fails),
  taskIdCharacters: characters(2_048, "the id of a server's task", fails),

  queueMs: durationLimit(
    5_000,
    "a call in the queue, or half of the call's timeout if that is shorter",
    '`OVERLOADED`',
  ),
  suspendedMs: durationLimit(10 * minuteMs, 'a call that waits for the next request of its client', 'it is cancelled'),
  refusals: items(600, 'refusals of one caller that are recorded at once', 'they are counted, and get `RATE_LIMITED`'),
  refusalsPerMinute: items(600, 'refusals of one caller that are recorded per minute', 'the same'),
  executeToolsCalls: items(64, 'calls in one `execute_tools`', '`INVALID_ARGUMENTS`'),
  executeToolsBytes: bytes(
    16 * mebibytes,
    'the results of one `execute_tools`, as object and as text',
    'those that do not fit are replaced with an error',
  ),
  chatTools: items(128, 'tools of the client in a chat request', 'HTTP 400'),
  modelQueue: items(16, 'requests that wait for one GGUF model', '`OVERLOADED`'),
  auditArgumentCharacters: characters(16 * kibibytes, 'arguments in the audit log', 'they are truncated and hashed'),

  sessionIdleMs: durationLimit(60 * minuteMs, 'a session without requests', 'it ends'),
  sessionSubscriptions: items(1_000, 'subscriptions of one session', '`OVERLOADED`'),
  storedMessages: items(1_000, 'messages of one session for a client that reconnects', 'the oldest are dropped'),
  storedBytes: bytes(mebibytes, 'those messages', 'the oldest are dropped'),
  unreadBytes: bytes(mebibytes, 'data of one stream that its client does not read', 'the connection is closed'),
  clientQuestions: items(64, 'unanswered requests to one client', 'the server gets an error'),
  capabilityCharacters: characters(4_096, 'the capabilities that a client declares', 'the request is refused'),
  adminReads: items(4, 'reads of one caller in the admin API that run at a time', 'they wait'),
}
