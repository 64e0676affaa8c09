import type { PageText } from '../page-text.ts'

/** What can become of a call that was allowed. */
export const running = {
  RATE_LIMITED: {
    happened: 'A limit per minute is used up',
    remedy: 'Wait `retryAfterMs`',
    causes: [
      'The agent has made as many calls as a limit allows. The most particular one counts: of the tool (`limits.tools`), else of the server (`limits.servers`), else of whatever has none of its own (`limits.perMinute`); `agents.*.perMinute` is a total beside it.',
      'All spellings of a tool count as one. Each agent has its own count, also where it inherits the number. Tools that carry other calls (`execute_tool`, `execute_tools`) are not counted, since what they carry is.',
      'More than `auth.maxFailures` wrong credentials came from one address, or the bodies of requests in flight take more memory than `server.maxInFlightPerCaller` or `server.maxInFlight` allow. Both are refused at the door, with HTTP status 429.',
    ],
    model: [
      'Wait for `retryAfterMs`, then call again. A refused call costs nothing, but calling sooner is in vain.',
      'Ask for more at a time instead of calling more often.',
    ],
    operator: [
      'The `rule` is the key to change. A limit may be used up at once; each call counts for 60 seconds, so that no 60 seconds hold more calls than the limit.',
      'Over HTTP the answer also has a `Retry-After` header.',
    ],
    keys: [
      ...['limits.perMinute', 'limits.servers', 'limits.tools', 'agents.*.perMinute'],
      ...['auth.maxFailures', 'auth.failureInterval', 'server.maxInFlight', 'server.maxInFlightPerCaller'],
    ],
    commands: [],
    related: ['OVERLOADED'],
  },
  OVERLOADED: {
    happened: 'Too much at once',
    remedy: 'Wait `retryAfterMs`',
    causes: [
      'The server (`mcpServers.*.concurrency`), the agent (`agents.*.concurrency`) or the gateway (`limits.concurrency`) has as many calls in flight as allowed, and the queue is full (`limits.queue`) or the wait was too long.',
      'A client has too many requests, questions or subscriptions open, or all sessions are in use.',
      'The gateway is shutting down, or cannot get the keys by which it checks tokens.',
      'Redis does not answer, and the server needs a token that replicas share there.',
    ],
    model: [
      'Nothing was sent. Wait for `retryAfterMs` (a second if there is none) and call again, with fewer calls at once.',
    ],
    operator: ['The message says what is full. Raise that limit, or find out why its calls take long.'],
    keys: [
      'limits.concurrency',
      'limits.queue',
      'mcpServers.*.concurrency',
      'agents.*.concurrency',
      'server.shutdownGrace',
    ],
    commands: [],
    related: ['RATE_LIMITED', 'CIRCUIT_OPEN', 'TIMEOUT'],
  },
  TIMEOUT: {
    happened: 'No answer in time; the server was told to stop',
    remedy: 'Ask for less, or raise the timeout',
    causes: [
      'The tool takes longer than its timeout; the message names the setting and its value. Progress of the server starts the time again, up to `maxTimeout`, unless the caller named a limit (`timeout_ms`). Waiting for a free place and trying again count; the time in which a person is asked something does not.',
      'The server hangs.',
      'A question of the server to the person behind the client was not answered within ten minutes.',
    ],
    model: [
      'The call may have had an effect: look before you repeat one that writes.',
      'Ask for less at a time, or give it longer (`timeout_ms` of `execute_tool` and `execute_tools`).',
    ],
    operator: ['Set a longer time for the tool, the server or all calls; `toolway call --timeout` tries it out.'],
    keys: [
      'defaults.timeout',
      'defaults.maxTimeout',
      'mcpServers.*.timeout',
      'mcpServers.*.maxTimeout',
      'mcpServers.*.toolTimeouts',
    ],
    commands: ['toolway call TOOL --timeout 2m'],
    related: ['OUTCOME_UNKNOWN', 'CIRCUIT_OPEN'],
  },
  CANCELLED: {
    happened: 'The caller cancelled',
    remedy: 'Nothing',
    causes: [
      'The client cancelled the request, went away with no way to come back for the answer, or ended its session.',
      'The command line was interrupted.',
    ],
    model: [
      'Nothing. If the call writes, look before you repeat it: it may have had an effect before it was cancelled.',
    ],
    operator: [
      'The server was told to stop as well. Many of these may mean that clients wait for less time than tools need.',
    ],
    keys: [],
    commands: [],
    related: ['TIMEOUT', 'OUTCOME_UNKNOWN'],
  },
  OUTCOME_UNKNOWN: {
    happened: 'The server went away in mid-call; it may or may not have run',
    remedy: 'Check before you call again',
    causes: [
      'The process ended, or the connection broke, after the call had been sent and before it was answered.',
      'The server answered with something that is no message of the protocol.',
      'An HTTP server refused the session of the call (404). Some servers run the call first.',
    ],
    model: ['Look whether the call took effect, with a tool that reads, before you repeat it.'],
    operator: [
      'The log has the last words of the process; `toolway servers` shows how the server is now.',
      'Calls of tools that are known to do no harm twice are tried again by themselves: list them in `readTools` or `idempotentTools`.',
    ],
    keys: ['mcpServers.*.idempotentTools', 'mcpServers.*.readTools', 'retry'],
    commands: ['toolway servers'],
    related: ['SERVER_UNAVAILABLE', 'TIMEOUT'],
  },
  AUDIT_UNAVAILABLE: {
    happened: 'The audit log cannot be written, so the call was refused or its answer withheld',
    remedy: 'Read in the message whether it has run; tell the operator',
    causes: [
      'The disk is full or failing, or the folder of the log cannot be written to.',
      'Writes are always refused then, before they are sent; reads go on unless `audit.unrecordedReads` is `refuse`.',
      'It happened in the middle of a call: the message then says that the call HAS run.',
    ],
    model: [
      'Read the message: "nothing was sent" means that you may call again later; "this call HAS run" means that you must look before you repeat it.',
    ],
    operator: [
      'Make room on the disk or mend the folder; recording goes on by itself, and the log says how many operations it has missed.',
      '`toolway audit verify` checks that nothing else is missing.',
    ],
    keys: ['audit.path', 'audit.sync', 'audit.unrecordedReads', 'audit.retain'],
    commands: ['toolway audit verify', 'toolway audit tail'],
    related: ['INTERNAL', 'OVERLOADED'],
  },
  INTERNAL: {
    happened: "A fault of Toolway's",
    remedy: 'The log has the cause; please report it',
    causes: [
      'Something happened that nobody has thought of. Its cause is in the log alone, since it may hold what callers should not see.',
    ],
    model: ['Do not repeat the call: the same will happen again, and it may have had an effect. Tell the user.'],
    operator: ['Look for "A request failed unexpectedly" in the log, and report what it says.'],
    keys: ['telemetry.log'],
    commands: ['toolway serve --log debug'],
    related: ['AUDIT_UNAVAILABLE'],
  },
} as const satisfies Record<string, PageText>
