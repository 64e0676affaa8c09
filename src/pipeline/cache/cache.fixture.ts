import { createManualClock } from '../../../tests/fixtures/clock.ts'
import { type Config, configSchema } from '../../config/schema.ts'
import { callOf, entryOf } from '../../core/call.fixture.ts'
import { type Call, type Caller, compose, type Handler, type Peer } from '../../core/call.ts'
import type { Entry } from '../../core/entry.ts'
import type { Result, ResultBody } from '../../core/result.ts'
import type { CacheStore } from '../../core/stores.ts'
import { Json } from '../../json/json.ts'
import { members } from '../../json/json-text.ts'
import { memoryCache } from '../../stores/cache.ts'
import { attemptInSteps } from '../attempt.ts'
import { timeout } from '../timeout.ts'
import { cache } from './cache.ts'
import { cacheRules } from './rules.ts'

export interface Changes {
  readonly cache?: object
  readonly servers?: Readonly<Record<string, object>>
  readonly naming?: object
  readonly needsApproval?: (entry: Entry) => string | undefined
}

/** The rules of a configuration with one server, `files`, in which the cache is on. */
export function rulesOf({ cache: section, servers = {}, naming, needsApproval = () => undefined }: Changes = {}) {
  const mcpServers = { files: { command: 'files', ...servers.files }, ...without(servers, 'files') }
  const written = { mcpServers, cache: { enabled: true, ...section }, ...(naming && { naming }) }
  return cacheRules(configSchema.parse(written) as Config, needsApproval)
}

const without = (servers: Readonly<Record<string, object>>, name: string) =>
  Object.fromEntries(Object.entries(servers).filter(([key]) => key !== name))

const roomy = { maxEntries: 10_000, maxBytes: 1 << 26 }

/** A store that is somewhere else: everything takes a moment. */
export function farStore(): CacheStore {
  const near = memoryCache(roomy)
  const moment = () => new Promise<void>((resolve) => setImmediate(resolve))
  return {
    ...near,
    get: (...asked) => moment().then(() => near.get(...asked)),
    put: (...asked) => moment().then(() => near.put(...asked)),
    drop: (...asked) => moment().then(() => near.drop(...asked)),
  }
}

/** The cache in front of a scripted server. By default it numbers its answers. */
export function openCache(changes: Changes = {}, store: CacheStore = memoryCache(roomy)) {
  const clock = createManualClock()
  const kept = cache({ store, members, clock })
  const runs: Call[] = []
  let run: Handler = async () => answerOf({ content: [{ type: 'text', text: `answer ${runs.length}` }] })
  const counted: Handler = (call) => {
    runs.push(call)
    return run(call)
  }
  const layers = (others: Changes) => {
    const layer = kept.interceptor(rulesOf(others))
    return compose([...(layer ? [layer] : []), timeout(clock)], attemptInSteps({}, [], counted))
  }
  return {
    ...kept,
    clock,
    /** What has reached the server, oldest first. */
    runs,
    handle: layers(changes),
    /** The same cache under another configuration. */
    reloaded: layers,
    /** What the server does from now on. */
    does(next: Handler) {
      run = next
    },
  }
}

/** A result as it comes from a server: as bytes. */
export const answerOf = (body: ResultBody): Result => ({
  body: Json.raw(Buffer.from(JSON.stringify(body))),
  isError: body.isError === true,
})

/** A tool that the operator has declared a read. */
export const readTool = (changes: Partial<Entry> = {}): Entry =>
  entryOf({ traits: { readOnly: true, idempotent: true, timeoutMs: 30_000 }, ...changes })

const read = readTool()
const { caller: somebody, peer: nobody } = callOf()

export interface Asked extends Partial<Omit<Call, 'caller' | 'input' | 'peer'>> {
  readonly caller?: Partial<Caller>
  readonly args?: object
  readonly uri?: string
  readonly meta?: Readonly<Record<string, unknown>>
  readonly rest?: Readonly<Record<string, unknown>>
  readonly peer?: Partial<Peer>
}

/** A call of that tool, unless it is another one's. */
export const asking = ({ caller, args = {}, uri, meta = {}, rest, peer, ...changes }: Asked = {}): Call =>
  callOf({
    entry: read,
    caller: { ...somebody, ...caller },
    input: { arguments: Json.of({ ...args }), meta, ...(uri !== undefined && { uri }), ...(rest && { rest }) },
    peer: { ...nobody, ...peer },
    ...changes,
  })

/** A handler whose calls wait until a test answers them. */
export function heldBack() {
  const held: { readonly call: Call; answer(result: Result): void; fail(error: unknown): void }[] = []
  const run: Handler = (call) =>
    new Promise((answer, fail) => {
      held.push({ call, answer, fail })
      call.signal.addEventListener('abort', () => fail(call.signal.reason), { once: true })
    })
  return { held, run }
}

/** The cache in front of a server that answers when a test wants it to. */
export function openHeldBack(changes?: Changes) {
  const { held, run } = heldBack()
  const opened = openCache(changes)
  opened.does(run)
  return { ...opened, held, last: () => held.at(-1) as (typeof held)[number] }
}

export const textOf = ({ body }: Result): unknown => body.value.content?.[0]?.text

/** Lets promises settle. */
export const settled = () => new Promise<void>((resolve) => setImmediate(resolve))
