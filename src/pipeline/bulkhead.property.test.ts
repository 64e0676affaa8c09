import assert from 'node:assert/strict'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { runs } from '../../tests/fixtures/runs.ts'
import { type Asked, bulkheadOf, type Running, settled } from './bulkhead.fixture.ts'

interface Limits {
  readonly servers: number
  readonly agents: number | undefined
  readonly total: number
  readonly queue: number
}

interface One extends Required<Omit<Asked, 'carries' | 'principal'>> {
  readonly id: number
  until: number
}

/** The bulkhead as one would tell it: lists of who runs and who waits, gone through from the beginning each time. */
interface Model {
  readonly limits: Limits
  now: number
  calls: number
  running: One[]
  waiting: One[]
  /** When each lane last had its turn, or was begun. */
  turns: Map<string, number>
  turn: number
  refused: Set<number>
}

interface Real extends ReturnType<typeof bulkheadOf> {
  readonly all: Running[]
}

const laneOf = ({ agent, server }: One) => `${agent} ${server}`
const inLane = (model: Model, lane: string) => model.waiting.filter((one) => laneOf(one) === lane)

const fits = ({ limits, running }: Model, { server, agent }: One) =>
  running.length < limits.total &&
  (server === 'native' || running.filter((one) => one.server === server).length < limits.servers) &&
  (limits.agents === undefined || running.filter((one) => one.agent === agent).length < limits.agents)

const without = (list: One[], gone: One) => list.filter((one) => one !== gone)

function leaves(model: Model, one: One) {
  model.waiting = without(model.waiting, one)
  if (inLane(model, laneOf(one)).length === 0) model.turns.delete(laneOf(one))
}

function serve(model: Model) {
  for (;;) {
    const inTurn = [...model.turns].sort(([, a], [, b]) => a - b).map(([lane]) => inLane(model, lane)[0] as One)
    const next = inTurn.find((one) => fits(model, one))
    if (!next) return
    leaves(model, next)
    if (model.turns.has(laneOf(next))) model.turns.set(laneOf(next), model.turn++)
    model.running.push(next)
  }
}

function waits(model: Model, one: One) {
  if (model.waiting.length >= model.limits.queue) {
    const lengths = [...model.turns].sort(([, a], [, b]) => a - b).map(([lane]) => inLane(model, lane))
    const longest = lengths.reduce((most, lane) => (lane.length > most.length ? lane : most), [])
    if (longest.length <= inLane(model, laneOf(one)).length + 1) return void model.refused.add(one.id)
    const last = longest.at(-1) as One
    leaves(model, last)
    model.refused.add(last.id)
  }
  model.waiting.push(one)
  if (!model.turns.has(laneOf(one))) model.turns.set(laneOf(one), model.turn++)
}

async function check(model: Model, real: Real) {
  await settled()
  const { limits, running, waiting } = model
  const { inFlight, queued, servers, agents } = real.stats()
  // Plain comparisons after each of thousands of steps: `expect` would take most of the time.
  assert.deepEqual({ inFlight, queued }, { inFlight: running.length, queued: waiting.length })
  assert.ok(inFlight <= limits.total && queued <= limits.queue)
  for (const [name, load] of Object.entries(servers)) {
    assert.ok(load.inFlight <= limits.servers)
    assert.equal(load.inFlight, running.filter(({ server }) => server === name).length)
    assert.equal(load.queued, waiting.filter(({ server }) => server === name).length)
  }
  for (const load of Object.values(agents)) assert.ok(load.inFlight <= (limits.agents as number))
  for (const { id } of running) assert.equal(real.all[id]?.sent, true)
  for (const { id } of waiting) assert.equal(real.all[id]?.sent, false)
  for (const id of model.refused) await expect(real.all[id]?.answer).rejects.toMatchObject({ code: 'OVERLOADED' })
  model.refused.clear()
  // Only those who wait have a timer.
  assert.equal(real.clock.pending, queued)
}

type Step = fc.AsyncCommand<Model, Real>

class Begin implements Step {
  readonly asked: Required<Omit<Asked, 'carries' | 'principal'>>
  constructor(asked: Required<Omit<Asked, 'carries' | 'principal'>>) {
    this.asked = asked
  }
  check = () => true
  async run(model: Model, real: Real) {
    const patience = Math.min(5_000, this.asked.timeoutMs / 2)
    const one = { ...this.asked, id: model.calls++, until: model.now + patience }
    real.all.push(real.begin(this.asked))
    if (fits(model, one)) model.running.push(one)
    else waits(model, one)
    await check(model, real)
  }
  toString = () => `begin(${Object.values(this.asked).join(' ')})`
}

class End implements Step {
  readonly pick: number
  readonly how: 'answer' | 'failure' | 'abort'
  constructor(pick: number, how: 'answer' | 'failure' | 'abort') {
    this.pick = pick
    this.how = how
  }
  check = (model: Readonly<Model>) => model.running.length > 0
  async run(model: Model, real: Real) {
    const one = model.running[this.pick % model.running.length] as One
    const call = real.all[one.id] as Running
    if (this.how === 'abort') await call.abort()
    else await call.end(this.how === 'failure' ? new Error('failed') : undefined)
    model.running = without(model.running, one)
    serve(model)
    await check(model, real)
  }
  toString = () => `end(${this.pick}, ${this.how})`
}

class GiveUp implements Step {
  readonly pick: number
  constructor(pick: number) {
    this.pick = pick
  }
  check = (model: Readonly<Model>) => model.waiting.length > 0
  async run(model: Model, real: Real) {
    const one = model.waiting[this.pick % model.waiting.length] as One
    await real.all[one.id]?.abort()
    leaves(model, one)
    await expect(real.all[one.id]?.answer).rejects.toThrow('called off')
    await check(model, real)
  }
  toString = () => `giveUp(${this.pick})`
}

class Pass implements Step {
  readonly ms: number
  constructor(ms: number) {
    this.ms = ms
  }
  check = () => true
  async run(model: Model, real: Real) {
    real.clock.advance(this.ms)
    model.now += this.ms
    for (const one of model.waiting.filter(({ until }) => until <= model.now)) {
      leaves(model, one)
      model.refused.add(one.id)
    }
    await check(model, real)
  }
  toString = () => `pass(${this.ms})`
}

const asked = fc.record({
  server: fc.constantFrom('x', 'y', 'native'),
  agent: fc.constantFrom('a', 'b', 'c'),
  timeoutMs: fc.constantFrom(500, 8_000, 30_000),
})

const limits = fc.record({
  servers: fc.integer({ min: 1, max: 3 }),
  agents: fc.option(fc.integer({ min: 1, max: 3 }), { nil: undefined }),
  total: fc.integer({ min: 1, max: 6 }),
  queue: fc.integer({ min: 0, max: 8 }),
})

const begin = asked.map((one) => new Begin(one))
const end = fc
  .tuple(fc.nat({ max: 20 }), fc.constantFrom('answer' as const, 'failure' as const, 'abort' as const))
  .map(([pick, how]) => new End(pick, how))
const steps = fc.commands(
  [
    begin,
    begin,
    begin,
    end,
    end,
    fc.nat({ max: 20 }).map((pick) => new GiveUp(pick)),
    fc.oneof(fc.nat({ max: 300 }), fc.constantFrom(250, 4_000, 5_000)).map((ms) => new Pass(ms)),
  ],
  { size: '+1' },
)

test('B7: never exceeds a limit, serves agents in turn, and loses no slot', async () => {
  await fc.assert(
    fc.asyncProperty(limits, steps, async (limit, commands) => {
      const real: Real = {
        ...bulkheadOf({
          serverLimit: (server) => (server === 'native' ? undefined : limit.servers),
          agentLimit: () => limit.agents,
          total: limit.total,
          queue: limit.queue,
        }),
        all: [],
      }
      const start = { limits: limit, now: real.clock.now(), calls: 0, running: [], waiting: [], turn: 0 }
      await fc.asyncModelRun(
        () => ({ model: { ...start, turns: new Map(), refused: new Set<number>() }, real }),
        commands,
      )
      // However it went: once everybody has ended, everything is free and nothing is left.
      for (const call of real.all) await call.abort()
      expect(real.stats()).toMatchObject({ inFlight: 0, queued: 0 })
      expect(real.clock.pending).toBe(0)
    }),
    runs(20, 3_000),
  )
})

test('B7: as long as calls end, each waiting agent is served within one round of the others', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(asked, { minLength: 5, maxLength: 30 }), limits, async (wanted, { servers, total }) => {
      const gateway = bulkheadOf({ serverLimit: () => servers, total, queue: 1_000 })
      const calls = wanted.map((one) => gateway.begin({ ...one, server: 'x' }))
      const ended = new Set<Running>()
      while (ended.size < calls.length) {
        const running = calls.find((call) => call.sent && !ended.has(call)) as Running
        expect(running).toBeDefined()
        await running.end()
        ended.add(running)
      }
      // Whoever has come first, no agent is served twice in a row while another one waits from the start.
      const late = gateway.order.slice(Math.min(servers, total))
      const left = new Map<string, number>()
      for (const lane of late) left.set(lane, (left.get(lane) ?? 0) + 1)
      let before = ''
      for (const lane of late) {
        const others = [...left].some(([other, count]) => other !== lane && count > 0)
        if (others) expect(lane).not.toBe(before)
        left.set(lane, (left.get(lane) as number) - 1)
        before = lane
      }
    }),
    runs(20, 100),
  )
})
