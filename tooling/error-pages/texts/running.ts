import type { PageText } from '../page-text.ts'

/** Failures of allowed calls. */
export const running = {
  RATE_LIMITED: {
    happened: 'A rate limit is exhausted',
    remedy: 'Wait `retryAfterMs`',
    causes: [
      "The agent has made as many calls as a limit allows. The most specific limit applies: the limit for the tool (`limits.tools`), otherwise the limit for the server (`limits.servers`; its `*` limits each server that is not listed), otherwise the default (`limits.perMinute`). `agents.*.perMinute` is an additional limit on all of an agent's calls together.",
      "All spellings of a tool share one limit. Each agent's calls are counted separately, even if the agent inherits the limit from a parent agent; with `limits.per: client`, each principal's are. Calls to `execute_tool` and `execute_tools` are not counted; the calls that they run are.",
      'One address sent more than `auth.maxFailures` wrong credentials, or the bodies of requests in flight exceed `server.maxInFlightPerCaller` or `server.maxInFlight`. The excess attempts or requests are refused with HTTP status 429.',
    ],
    model: [
      'Wait `retryAfterMs` milliseconds, then try again. Refused calls do not count against the limit, but a call made sooner fails again.',
      'Request more data per call instead of making more calls.',
    ],
    operator: [
      '`rule` names the setting to change. A caller may use the whole limit at once. Each call counts for 60 seconds, so no period of 60 seconds contains more calls than the limit.',
      'Over HTTP, the response also has a `Retry-After` header.',
    ],
    keys: [
      ...['limits.perMinute', 'limits.servers', 'limits.tools', 'agents.*.perMinute'],
      ...['auth.maxFailures', 'auth.failureInterval', 'server.maxInFlight', 'server.maxInFlightPerCaller'],
    ],
    commands: [],
    related: ['OVERLOADED'],
  },
  OVERLOADED: {
    happened: 'Too many concurrent calls',
    remedy: 'Wait `retryAfterMs`',
    causes: [
      'The server (`mcpServers.*.concurrency`), the agent (`agents.*.concurrency`) or the gateway (`limits.concurrency`) has as many calls in flight as allowed, and the queue is full (`limits.queue`) or the call waited too long.',
      'A caller has used up its share of a budget (requests, queued calls, questions, sessions, streams, subscriptions), or all callers together have used up the budget: see `docs/operations/overload.md`.',
      'The gateway is shutting down, or cannot fetch the keys that it needs to verify JSON Web Tokens.',
      'Redis is not responding, and the server needs an OAuth token that is stored there.',
    ],
    model: [
      'Nothing was sent. Wait `retryAfterMs` milliseconds (or one second, if the error does not contain it) and try again, making fewer calls at once.',
    ],
    operator: ['The message says which limit was reached. Raise that limit, or find out why the calls take so long.'],
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
    happened: 'The call timed out, and the server was asked to cancel it',
    remedy: 'Request less data per call, or raise the timeout',
    causes: [
      'The tool takes longer than its timeout; the message names the setting and its value. Progress notifications from the server restart the timeout, up to `maxTimeout`, unless the caller set the timeout (`timeout_ms`). The timeout includes time spent in queues and on retries, but not the time that a person takes to answer a question. With `retry.onTimeout`, a call that is safe to repeat is sent again after half of it.',
      'The server is hanging.',
      'The user did not answer a question from the server within ten minutes.',
    ],
    model: [
      'The call may have had an effect. If it writes, check before you repeat it.',
      'Request less data per call, or set a longer timeout (the `timeout_ms` argument of `execute_tool` and `execute_tools`).',
    ],
    operator: [
      'Set a longer timeout for the tool, the server or all calls. To try a value first, use `toolway call --timeout`.',
    ],
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
    happened: 'The caller cancelled the call',
    remedy: 'No action is needed',
    causes: [
      'The client cancelled the request, closed a connection that cannot be resumed, or ended its session.',
      'The command line was interrupted.',
    ],
    model: [
      'No action is needed. But if the call writes, check before you repeat it: it may have had an effect before it was cancelled.',
    ],
    operator: [
      "Toolway also asked the server to cancel the call. If this error is frequent, the clients' timeouts may be too short for the tools.",
    ],
    keys: [],
    commands: [],
    related: ['TIMEOUT', 'OUTCOME_UNKNOWN'],
  },
  OUTCOME_UNKNOWN: {
    happened: 'The connection to the server was lost during the call; the call may or may not have run',
    remedy: 'Check whether it ran before you call again',
    causes: [
      'The server process exited, or the connection was lost, after the call was sent and before it was answered.',
      'The server sent an invalid protocol message.',
      'Another replica or worker handled the call, and exited or stopped responding before it answered.',
      'The result exceeds a limit for its size, nesting, content blocks or values; `toolway servers` shows which.',
      'The call ran in a batch (`execute_tools`), whose results together exceed 16 MiB.',
      'An HTTP server refused the session that the call was sent in (404). Some servers run the call before they check the session, so it may have run.',
    ],
    model: ['Check with a read-only tool whether the call took effect before you repeat it.'],
    operator: [
      "The log contains the process's last stderr output; `toolway servers` shows the server's current status.",
      'Toolway retries only calls to tools that are safe to repeat. List such tools in `readTools` or `idempotentTools`.',
    ],
    keys: ['mcpServers.*.idempotentTools', 'mcpServers.*.readTools', 'retry'],
    commands: ['toolway servers'],
    related: ['SERVER_UNAVAILABLE', 'TIMEOUT'],
  },
  AUDIT_UNAVAILABLE: {
    happened: 'The audit log cannot be written, so the call was refused or its result withheld',
    remedy: 'Read in the message whether the call ran, and tell the operator',
    causes: [
      'The disk is full or failing, or the log folder is not writable.',
      'While the log cannot be written, calls that may write are refused before they are sent. Reads continue unless `audit.unrecordedReads` is `refuse`.',
      'If the log failed during a call, the message says that the call HAS run.',
    ],
    model: [
      'Read the message: "nothing was sent" means that you may call again later; "this call HAS run" means that you must check before you repeat it.',
    ],
    operator: [
      'Free up disk space, or fix the folder. Recording then resumes automatically, and the audit log states how many operations were not recorded.',
      '`toolway audit verify` checks that no other records are missing.',
    ],
    keys: ['audit.path', 'audit.sync', 'audit.unrecordedReads', 'audit.retain'],
    commands: ['toolway audit verify', 'toolway audit tail'],
    related: ['INTERNAL', 'OVERLOADED'],
  },
  INTERNAL: {
    happened: 'An internal error in Toolway',
    remedy: 'See the log for the cause, and report the error',
    causes: [
      'An unexpected error in Toolway. The cause is only in the log, because it may contain data that callers should not see.',
    ],
    model: ['Do not repeat the call: it would fail again, and it may have had an effect. Tell the user.'],
    operator: ['Look for "request failed unexpectedly" in the log, and report the error.'],
    keys: ['telemetry.log'],
    commands: ['toolway serve --log debug'],
    related: ['AUDIT_UNAVAILABLE'],
  },
} as const satisfies Record<string, PageText>
