import fc from 'fast-check'
import { expect, test } from 'vitest'
import { runs } from '../../tests/fixtures/runs.ts'
import { ServerError, ToolwayError } from '../core/errors.ts'
import { type Result, resultOf, textResult } from '../core/result.ts'
import { Json } from '../json/json.ts'
import { breakersOf, type Running } from './breaker.fixture.ts'
import type { BreakerConfig } from './breaker.ts'

/** The breaker as one would tell it: everything that happened is kept, and looked through at each question. */
interface Model {
  readonly config: BreakerConfig
  now: number
  state: 'closed' | 'open' | 'half-open'
  since: number
  /** Ends since it was closed. */
  ends: { at: number; failed: boolean }[]
  row: number
  /** How often it has opened since it was closed. */
  openings: number
  /** Until when one failure is enough, because the server fails elsewhere. */
  hintedUntil: number
  /** Calls under way, and the moment they were let through in. */
  calls: { epoch: number }[]
  epoch: number
}

interface Real extends ReturnType<typeof breakersOf> {
  readonly running: Running[]
}

const endings: Record<string, { how: Result | Error; means: 'good' | 'bad' | 'neither' }> = {
  result: { how: textResult('fine'), means: 'good' },
  isError: { how: resultOf({ isError: true }), means: 'good' },
  serverError: { how: new ServerError(Json.of({ code: 1, message: 'no' })), means: 'good' },
  unavailable: { how: new ToolwayError('SERVER_UNAVAILABLE', 'Down.'), means: 'bad' },
  unknown: { how: new ToolwayError('OUTCOME_UNKNOWN', 'Gone.'), means: 'bad' },
  cancelled: { how: new ToolwayError('CANCELLED', 'No more.'), means: 'neither' },
  overloaded: { how: new ToolwayError('OVERLOADED', 'Full.'), means: 'neither' },
  ours: { how: new TypeError('ours'), means: 'neither' },
}

const pauseOf = ({ config, openings }: Model) =>
  Math.min(config.openFor * 2 ** (openings - 1), Math.max(config.openFor, 120_000))

function turn(model: Model, state: Model['state']) {
  model.state = state
  model.since = model.now
  model.epoch++
}

const opens = (model: Model) => {
  model.openings++
  turn(model, 'open')
}

const probing = ({ calls, epoch }: Model) => calls.filter((call) => call.epoch === epoch).length

function check(model: Model, real: Real) {
  const left = model.state === 'open' ? { retryAfterMs: model.since + pauseOf(model) - model.now } : {}
  const { reason: _, ...state } = real.state()
  expect(state).toEqual({ state: model.state, since: model.since, failures: model.row, ...left })
}

type Step = fc.AsyncCommand<Model, Real>

class Begin implements Step {
  check = () => true
  async run(model: Model, real: Real) {
    const allowed =
      model.state === 'closed' || (model.state === 'half-open' && probing(model) < model.config.halfOpenCalls)
    const running = real.begin()
    expect(running.sent).toBe(allowed)
    if (allowed) {
      model.calls.push({ epoch: model.epoch })
      real.running.push(running)
    } else await expect(running.answer).rejects.toMatchObject({ code: 'CIRCUIT_OPEN' })
    check(model, real)
  }
  toString = () => 'begin'
}

class End implements Step {
  readonly pick: number
  readonly ending: string
  constructor(pick: number, ending: string) {
    this.pick = pick
    this.ending = ending
  }
  check = (model: Readonly<Model>) => model.calls.length > 0
  async run(model: Model, real: Real) {
    const { how, means } = endings[this.ending]!
    const index = this.pick % model.calls.length
    const [call] = model.calls.splice(index, 1)
    const [running] = real.running.splice(index, 1)
    await running!.end(how)
    if (call!.epoch === model.epoch && means !== 'neither') count(model, means === 'bad')
    check(model, real)
  }
  toString = () => `end(${this.pick}, ${this.ending})`
}

function count(model: Model, failed: boolean) {
  const { config, now } = model
  model.row = failed ? model.row + 1 : 0
  if (model.state === 'half-open') {
    if (failed) return opens(model)
    model.ends = []
    model.openings = 0
    return turn(model, 'closed')
  }
  model.ends.push({ at: now, failed })
  const slice = Math.ceil(config.window / 10)
  const recent = model.ends.filter(({ at }) => Math.floor(at / slice) > Math.floor(now / slice) - 10)
  const share = recent.filter((end) => end.failed).length / recent.length
  const tooMany = recent.length >= config.minimumCalls && share >= config.rate
  if (failed && (model.row >= config.failures || tooMany || now < model.hintedUntil)) opens(model)
  else if (!failed) model.hintedUntil = 0
}

class Hint implements Step {
  check = () => true
  async run(model: Model, real: Real) {
    if (model.state === 'closed') model.hintedUntil = model.now + model.config.openFor
    real.hint('files')
    check(model, real)
  }
  toString = () => 'hint'
}

class Pass implements Step {
  readonly ms: number
  constructor(ms: number) {
    this.ms = ms
  }
  check = () => true
  async run(model: Model, real: Real) {
    const { now } = model
    real.clock.advance(this.ms)
    const due = model.since + pauseOf(model)
    if (model.state === 'open' && due <= now + this.ms) {
      model.now = due
      turn(model, 'half-open')
    }
    model.now = now + this.ms
    check(model, real)
  }
  toString = () => `pass(${this.ms})`
}

const configs = fc.record({
  failures: fc.integer({ min: 1, max: 6 }),
  rate: fc.constantFrom(0, 0.25, 0.5, 1),
  minimumCalls: fc.integer({ min: 1, max: 8 }),
  window: fc.constantFrom(1, 1_000, 30_000),
  openFor: fc.constantFrom(1, 500, 15_000, 200_000),
  halfOpenCalls: fc.integer({ min: 1, max: 3 }),
})

const steps = fc.commands(
  [
    fc.constant(new Begin()),
    fc.constant(new Hint()),
    fc.constant(new Begin()),
    fc.tuple(fc.nat({ max: 20 }), fc.constantFrom(...Object.keys(endings))).map(([pick, how]) => new End(pick, how)),
    fc.tuple(fc.nat({ max: 20 }), fc.constantFrom('unavailable', 'unknown')).map(([pick, how]) => new End(pick, how)),
    fc.oneof(fc.nat({ max: 1_000 }), fc.constantFrom(500, 15_000, 60_000)).map((ms) => new Pass(ms)),
  ],
  { size: '+1' },
)

test('J3: for any sequence of events the breaker agrees with its model', async () => {
  await fc.assert(
    fc.asyncProperty(configs, steps, async (config, commands) => {
      const real: Real = { ...breakersOf(config), running: [] }
      const now = real.clock.now()
      const start = { config, now, state: 'closed' as const, since: now, epoch: 0, openings: 0, row: 0, hintedUntil: 0 }
      await fc.asyncModelRun(() => ({ model: { ...start, ends: [], calls: [] }, real }), commands)
      real[Symbol.dispose]()
      expect(real.clock.pending).toBe(0)
    }),
    runs(50, 10_000),
  )
})
