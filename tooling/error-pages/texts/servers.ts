import type { PageText } from '../page-text.ts'

/** Servers that cannot be had. */
export const servers = {
  SERVER_UNAVAILABLE: {
    happened: 'The server could not be reached; the call did not run',
    remedy: 'Look at `server_health`; call again',
    causes: [
      'Its command was not found, may not be run, or ended before it had introduced itself; the message repeats its last words.',
      'Its address cannot be reached, redirects elsewhere, or refuses the credential that Toolway shows.',
      'It says that it is too busy (HTTP 429 or 503); where it says for how long, so does `retryAfterMs`.',
      'It was still starting when the time of the call was over, and is not known to have failed.',
      'Its connection was found to be closed before anything was sent.',
    ],
    model: [
      'Call again once; nothing was done. Where an earlier attempt may have run after all, the message says so.',
      'If it fails again, use another server or tell the user what the message says.',
    ],
    operator: [
      '`toolway servers` connects to every server and shows why one fails; `--log debug` adds what it wrote.',
      'Correct the setting that the message names.',
      'What was surely not sent is tried again by itself (`retry`).',
    ],
    keys: [
      'mcpServers.*.command',
      'mcpServers.*.cwd',
      'mcpServers.*.env',
      'mcpServers.*.url',
      'mcpServers.*.auth',
      'mcpServers.*.headers',
      'retry',
    ],
    commands: ['toolway servers', 'toolway servers --log debug'],
    related: ['SERVER_UNHEALTHY', 'CIRCUIT_OPEN', 'OUTCOME_UNKNOWN'],
  },
  SERVER_UNHEALTHY: {
    happened: 'The server failed before and is not tried again yet',
    remedy: 'Wait `retryAfterMs`; see the reason in `server_health`',
    causes: [
      'It could not be reached a moment ago. Between attempts there is a pause that grows up to half a minute, so that callers are answered at once and the server can recover.',
      'Its process has ended too often within a while (`mcpServers.*.restarts`).',
      'It has never been reached, so that nobody knows what it offers.',
      'It is disabled, by the configuration (`mcpServers.*.disabled`) or by an operator while it runs.',
    ],
    model: ['Call again after `retryAfterMs`, or use another server meanwhile; nothing was sent.'],
    operator: [
      'The message ends with what went wrong the last time; `server_health` and `toolway servers` show it too.',
    ],
    keys: ['mcpServers.*.restarts', 'mcpServers.*.command', 'mcpServers.*.url', 'mcpServers.*.disabled'],
    commands: ['toolway servers'],
    related: ['SERVER_UNAVAILABLE', 'CIRCUIT_OPEN'],
  },
  CIRCUIT_OPEN: {
    happened: 'Too many failures in a row; calls are held back',
    remedy: 'Wait `retryAfterMs`',
    causes: [
      'Calls to this server have failed one after the other (`breaker.failures`), or too large a share of them (`breaker.rate`). Only failures of the server itself count: no refusals, no cancellations, no results that say `isError`.',
      'The time is over, and another call is trying just now whether the server works again.',
    ],
    model: ['Nothing was sent. Call again after `retryAfterMs`, or use another server.'],
    operator: [
      'Find out why the server fails: `toolway audit query --server NAME --decision error` shows its calls.',
      'The breaker closes as soon as a call succeeds. Each time the trying call fails, it stays open twice as long: `openFor`, then 2, 4, 8 times that, up to 2 minutes (or `openFor` itself, if that is longer), less up to 20 % at random.',
      'It can be set for all servers and for each; while it is open, `server_health` says `unhealthy` and why.',
    ],
    keys: ['breaker', 'mcpServers.*.breaker'],
    commands: ['toolway servers', 'toolway audit query --server NAME --decision error'],
    related: ['SERVER_UNAVAILABLE', 'SERVER_UNHEALTHY', 'TIMEOUT'],
  },
} as const satisfies Record<string, PageText>
