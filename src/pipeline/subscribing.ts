import { randomUUID } from 'node:crypto'
import type { Call, Caller, Peer } from '../core/call.ts'
import type { Entry } from '../core/entry.ts'
import { Json } from '../core/json.ts'

/** A subscription as the layers see it: somebody wants something of an entry. */
export const subscribing = (caller: Caller, entry: Entry, uri: string): Call => ({
  id: randomUUID(),
  caller,
  entry,
  input: { arguments: Json.of({}), uri, meta: {} },
  signal: new AbortController().signal,
  peer: caller.peer ?? nobody,
})

const nobody: Peer = {
  rounds: false,
  logLevel: undefined,
  notify() {},
  ask: () => Promise.reject(new Error('nobody can be asked about a subscription')),
}
