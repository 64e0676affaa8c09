import type { LogLevel } from '../../core/capabilities.ts'
import { isObject, type Params } from '../inbound.ts'
import { isLogLevel } from '../log-level.ts'
import type { Client, Session } from '../session.ts'

/** What another replica needs to go on with a session. Its streams and the calls under way are lost with its holder. */
export interface SessionRecord {
  readonly client: Client
  readonly principal: string
  /** The agent that it asked to be. */
  readonly asked: string | undefined
  readonly logLevel: LogLevel | undefined
  readonly subscriptions: readonly string[]
}

export function writeRecord({ revision, capabilities, caller, logLevel, subscriptions }: Session): string {
  const { principal, asked } = caller
  const client = { revision, capabilities }
  return JSON.stringify({ client, principal, asked, logLevel, subscriptions: subscriptions.uris() })
}

/** Undefined for what no replica of ours has written. */
export function readRecord(text: string): SessionRecord | undefined {
  try {
    const { client, principal, asked, logLevel, subscriptions } = JSON.parse(text) as Params
    if (!isObject(client) || typeof client.revision !== 'string' || typeof principal !== 'string') return undefined
    return {
      client: { revision: client.revision, capabilities: isObject(client.capabilities) ? client.capabilities : {} },
      principal,
      asked: typeof asked === 'string' ? asked : undefined,
      logLevel: isLogLevel(logLevel) ? logLevel : undefined,
      subscriptions: Array.isArray(subscriptions) ? subscriptions.filter((uri) => typeof uri === 'string') : [],
    }
  } catch {
    return undefined
  }
}
