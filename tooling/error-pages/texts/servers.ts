import type { PageText } from '../page-text.ts'

/** Servers that are unavailable. */
export const servers = {
  SERVER_UNAVAILABLE: {
    happened: 'Toolway could not connect to the server; the call did not run',
    remedy: 'Check `server_health`; call again',
    causes: [
      "The server's command was not found, is not executable, or exited before the handshake; the message contains its last stderr output.",
      "The server's address cannot be reached or redirects elsewhere, or the server refuses Toolway's credential.",
      'The server refused this request, for example because it is too large (HTTP 413) or invalid (HTTP 400). Such refusals do not count for the breaker.',
      'The server is too busy (HTTP 429 or 503). If it sends `Retry-After`, the error has `retryAfterMs`.',
      'The server was still starting when the call timed out.',
      'The connection to the server was closed before anything was sent.',
      'The connection was lost during a request that changes nothing, such as a list, a completion, or the read of a resource or prompt.',
    ],
    model: [
      'Change the arguments, if the message says that the server refused the request.',
      'Otherwise, retry the call once; this attempt changed nothing. If an earlier attempt at the same call may have run, the message says so.',
      'If the call fails again, use another server or tell the user what the message says.',
    ],
    operator: [
      "`toolway servers` connects to every server and shows errors; `--log debug` adds the servers' output.",
      'Correct the setting that the message names.',
      'Toolway automatically retries requests that were not sent (`retry`).',
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
    commands: ['toolway servers', 'toolway servers --offline --log debug'],
    related: ['SERVER_UNHEALTHY', 'CIRCUIT_OPEN', 'OUTCOME_UNKNOWN'],
  },
  SERVER_UNHEALTHY: {
    happened: 'The server failed recently, and the next attempt is not due yet',
    remedy: 'Wait `retryAfterMs`; see the reason in `server_health`',
    causes: [
      'A recent connection attempt failed. The delay between attempts grows to at most 30 seconds. Until the next attempt, calls fail immediately, so that the server can recover; while Toolway reconnects, they wait up to 5 seconds.',
      "The server's process exited too often within a time window (`mcpServers.*.restarts`).",
      'Toolway has never connected to the server, so its tools are unknown.',
    ],
    model: ['Retry after `retryAfterMs`, or use another server. Nothing was sent.'],
    operator: ['The message ends with the last error; `server_health` and `toolway servers` also show this error.'],
    keys: ['mcpServers.*.restarts', 'mcpServers.*.command', 'mcpServers.*.url'],
    commands: ['toolway servers'],
    related: ['SERVER_UNAVAILABLE', 'SERVER_DISABLED', 'CIRCUIT_OPEN'],
  },
  SERVER_DISABLED: {
    happened: 'The server is turned off; the call did not run',
    remedy: 'Use another server, or ask an operator to enable it',
    causes: [
      'The configuration disables the server (`mcpServers.*.disabled`).',
      'An operator paused the server on the dashboard or through the admin API.',
    ],
    model: ['Do not wait or retry: the server stays off until a person enables it. Use another server.'],
    operator: ['Enable the server on its page of the dashboard, or remove `disabled` from the configuration.'],
    keys: ['mcpServers.*.disabled'],
    commands: ['toolway servers'],
    related: ['SERVER_UNHEALTHY', 'SERVER_UNAVAILABLE'],
  },
  CIRCUIT_OPEN: {
    happened: 'The server failed too often; its circuit breaker is open',
    remedy: 'Wait `retryAfterMs`',
    causes: [
      "Too many consecutive calls to this server failed (`breaker.failures`), or too large a share of recent calls failed (`breaker.rate`). Only the server's own failures count, not refusals, cancellations or results with `isError`.",
      'The breaker is half-open, and another call is already testing whether the server works again.',
    ],
    model: ['Nothing was sent. Retry after `retryAfterMs`, or use another server.'],
    operator: [
      'Find out why the server is failing: `toolway audit query --server NAME --decision error` shows its failed calls.',
      'The breaker closes as soon as a call succeeds.',
      'Each time the test call fails, the breaker stays open twice as long as before: `openFor`, then 2, 4, 8 times that, up to 2 minutes (or `openFor` itself, if that is longer). This time is shortened by a random amount of up to 20%.',
      'The breaker can be configured for all servers together, and for each server separately. While it is open, `server_health` shows `unhealthy` and the reason.',
    ],
    keys: ['breaker', 'mcpServers.*.breaker'],
    commands: ['toolway servers', 'toolway audit query --server NAME --decision error'],
    related: ['SERVER_UNAVAILABLE', 'SERVER_UNHEALTHY', 'TIMEOUT'],
  },
} as const satisfies Record<string, PageText>
