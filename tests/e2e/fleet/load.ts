import { setTimeout as pause } from 'node:timers/promises'
import { markHeader } from '../../fixtures/balancer.ts'
import { rawModern } from '../../fixtures/raw-callers.ts'
import { messageOf, type RpcAnswer, rawSession, rpc } from '../../fixtures/raw-http.ts'
import type { Endpoint } from '../../fixtures/toolway.ts'
import { until } from '../../fixtures/until.ts'

/** What became of one call. Every one has a mark of its own, which is in its arguments. */
export interface Outcome {
  readonly mark: string
  /** The session that it was made in; none in the stateless era. */
  readonly session: string | undefined
  readonly begun: number
  readonly ended: number
  /** Why there was no answer, or none that is a result. */
  readonly failure: string | undefined
}

/** Callers that call again and again. */
export interface Load {
  readonly sessions: readonly string[]
  readonly outcomes: readonly Outcome[]
  /** Waits for so many more calls. */
  more(calls: number): Promise<void>
  /** Lets the calls under way end; rejects where a caller has ended by itself. */
  stop(): Promise<readonly Outcome[]>
}

export interface LoadOptions {
  /** Half of them of the legacy era. */
  readonly callers?: number
  /** How long each waits between two calls; not at all unless told. */
  readonly pauseMs?: number
  readonly name?: string
  /** The call, given its mark; `hash` unless told. */
  call?(mark: string): object
  /** Repeats a call whose error says when to repeat it. */
  readonly retry?: boolean
}

type Ask = (mark: string) => Promise<RpcAnswer>

/** Makes the same call with its mark, over and over, each request on a connection of its own. */
export async function startLoad(endpoint: Endpoint, options: LoadOptions = {}): Promise<Load> {
  const { callers = 16, pauseMs = 0, name = 'load', call = hash, retry = false } = options
  const outcomes: Outcome[] = []
  let stopped = false
  const caller = async (number: number, ask: Ask, session?: string) => {
    for (let turn = 0; !stopped; turn++) {
      const mark = `${name}-${number}-${turn}.`
      const begun = performance.now()
      const attempt = () => ask(mark).then(failureOf, (thrown: Error) => thrown.message)
      let failure = await attempt()
      for (let ms = retryAfter(failure); retry && ms !== undefined; ms = retryAfter(failure)) {
        await pause(ms)
        failure = await attempt()
      }
      outcomes.push({ mark, session, begun, ended: performance.now(), failure })
      if (pauseMs > 0) await pause(pauseMs)
    }
  }
  const running: Promise<void>[] = []
  const sessions: string[] = []
  for (let number = 0; number < callers; number++) {
    if (number % 2 === 0) running.push(caller(number, modern(endpoint, call)))
    else {
      const { ask, session } = await legacy(endpoint, call)
      sessions.push(session)
      running.push(caller(number, ask, session))
    }
  }
  return {
    sessions,
    outcomes,
    async more(calls) {
      const enough = outcomes.length + calls
      await until(() => outcomes.length >= enough, { what: `${calls} more calls` })
    },
    async stop() {
      stopped = true
      await Promise.all(running)
      return outcomes
    },
  }
}

type Call = Required<LoadOptions>['call']

const hash: Call = (mark) => ({ name: 'hash', arguments: { data: mark } })

const modern =
  (endpoint: Endpoint, call: Call): Ask =>
  async (mark) =>
    JSON.parse(await rawModern(endpoint, {}, { [markHeader]: mark })('tools/call', call(mark)))

async function legacy(endpoint: Endpoint, call: Call): Promise<{ readonly ask: Ask; readonly session: string }> {
  const { send, headers } = await rawSession(endpoint)
  let lastId = 100
  return {
    session: headers['mcp-session-id'] as string,
    async ask(mark) {
      const { status, text } = await send(rpc(++lastId, 'tools/call', call(mark)), { [markHeader]: mark })
      if (status !== 200) throw new Error(`tools/call: HTTP ${status} ${text}`)
      return JSON.parse(messageOf(text))
    },
  }
}

function retryAfter(failure: string | undefined): number | undefined {
  const [, ms] = /"retryAfterMs":(\d+)/.exec(failure ?? '') ?? []
  return ms === undefined ? undefined : Number(ms)
}

const failureOf = ({ result, error }: RpcAnswer): string | undefined =>
  error === undefined && result?.isError !== true ? undefined : JSON.stringify(error ?? result)
