import { Json } from '../json/json.ts'
import type { Call } from './call.ts'
import type { Entry } from './entry.ts'
import { textResult } from './result.ts'

/** An entry that returns its own name, unless `changes` replaces its handler. */
export const entryOf = (changes: Partial<Entry> = {}): Entry => ({
  kind: 'tool',
  server: 'files',
  name: 'read',
  definition: {},
  traits: { readOnly: false, idempotent: false, timeoutMs: 30_000 },
  run: async (call) => textResult(call.entry.name),
  ...changes,
})

export const callOf = (changes: Partial<Call> = {}): Call => ({
  id: 'c1',
  caller: {
    agent: 'default',
    agents: '*',
    principal: 'test',
    authenticated: true,
    admin: false,
    session: 's1',
    capabilities: {},
  },
  entry: entryOf(),
  input: { arguments: Json.of({}), meta: {} },
  signal: new AbortController().signal,
  peer: { rounds: false, logLevel: undefined, notify() {}, ask: () => Promise.reject(new Error('nobody to ask')) },
  ...changes,
})
