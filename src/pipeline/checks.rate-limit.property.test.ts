import fc from 'fast-check'
import { expect, test } from 'vitest'
import { modelBuckets } from '../../tests/contract/buckets.model.ts'
import { createManualClock } from '../../tests/fixtures/clock.ts'
import { runs } from '../../tests/fixtures/runs.ts'
import { callOf, entryOf } from '../core/call.fixture.ts'
import { ToolwayError } from '../core/errors.ts'
import { textResult } from '../core/result.ts'
import type { Bucket } from '../core/stores.ts'
import { matches } from '../lib/wildcard.ts'
import { compileLimits, type LimitsOptions } from '../policy/limits.ts'
import { memoryBuckets } from '../stores/buckets.ts'
import { rateLimit } from './checks.ts'
import { interceptorOf } from './pipeline.fixture.ts'

const servers = ['a', 'a.b', 'toolway']
const names = ['x', 'xy', 'b.x', 'execute_tool']
const agents = ['team', 'team.one', 'team.one.two', 'lone', 'default']
const perMinute = fc.integer({ min: 1, max: 4 })
const some = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: undefined })

const options: fc.Arbitrary<LimitsOptions> = fc.record({
  limits: fc.record({
    perMinute: some(perMinute),
    servers: fc.dictionary(fc.constantFrom(...servers), perMinute),
    tools: fc.dictionary(fc.constantFrom('*', 'a.*', 'a.x*', 'a.b.x', '*x', 'a.*y', 'toolway.*', 'a.x'), perMinute),
  }),
  agents: fc.dictionary(fc.constantFrom(...agents), fc.record({ perMinute: some(perMinute) })),
})

const step = fc.record({
  wait: fc.oneof({ arbitrary: fc.constant(0), weight: 3 }, fc.integer({ min: 0, max: 90_000 })),
  agent: fc.constantFrom(...agents),
  server: fc.constantFrom(...servers),
  name: fc.constantFrom(...names),
  kind: fc.constantFrom('tool', 'tool', 'prompt'),
})

type Step = Pick<typeof step extends fc.Arbitrary<infer T> ? T : never, 'agent' | 'server' | 'name' | 'kind'>

const carries = ({ server, name }: Step) => server === 'toolway' && name === 'execute_tool'

/** The decision in words, once more: which limits, the rule of each as the key of its bucket. */
function expected({ limits, agents: written }: LimitsOptions, asked: Step): Bucket[] {
  const { agent, server, name, kind } = asked
  const whole = `${server}.${name}`
  const prefix = (pattern: string) => (pattern.includes('*') ? pattern.indexOf('*') : Number.POSITIVE_INFINITY)
  const tool = Object.keys(kind === 'tool' ? limits.tools : {})
    .filter((pattern) => matches(pattern, whole) && (!carries(asked) || pattern.startsWith('toolway.')))
    .sort((a, b) => prefix(b) - prefix(a) || b.length - a.length)[0]
  const found: Bucket[] = []
  const draw = (key: string, number: number) => found.push({ key: `${agent} ${key}`, perMinute: number })
  if (tool !== undefined) draw(`limits.tools.${tool} ${whole} ${server}`, limits.tools[tool]!)
  else if (limits.servers[server] !== undefined) draw(`limits.servers.${server}`, limits.servers[server])
  else if (limits.perMinute !== undefined && !carries(asked)) draw('limits.perMinute', limits.perMinute)
  const family = [agent, ...agents.filter((other) => agent.startsWith(`${other}.`)).sort((a, b) => b.length - a.length)]
  const giver = written[agent] && family.find((member) => written[member]?.perMinute !== undefined)
  if (giver !== undefined && !carries(asked)) draw(`agents.${giver}.perMinute`, written[giver]!.perMinute!)
  return found
}

test('F8: random calls at random times meet the limits that a tiny model of exact arithmetic says', async () => {
  await fc.assert(
    fc.asyncProperty(options, fc.array(step, { maxLength: 80, size: 'max' }), async (written, steps) => {
      const clock = createManualClock()
      const layer = interceptorOf(rateLimit({ limitsOf: compileLimits(written), buckets: memoryBuckets(), clock }))
      const model = modelBuckets()
      for (const asked of steps) {
        clock.advance(asked.wait)
        const traits = {
          readOnly: true,
          idempotent: true,
          timeoutMs: 1,
          ...(carries(asked) && { carries: true as const }),
        }
        const entry = entryOf({ ...asked, kind: asked.kind as 'tool', traits })
        const caller = { ...callOf().caller, agent: asked.agent }
        const failure = await layer(callOf({ caller, entry }), async () => textResult('done')).catch((error) => error)
        const wanted = expected(written, asked)
        const taken = wanted.length === 0 ? { allowed: true as const } : model.take(wanted, clock.now())
        if (taken.allowed) expect(failure).not.toBeInstanceOf(ToolwayError)
        else {
          expect(failure).toMatchObject({ code: 'RATE_LIMITED', details: { retryAfterMs: taken.retryAfterMs } })
          expect(taken.key.split(' ')[1]).toBe(failure.details.rule)
        }
      }
    }),
    runs(50, 10_000),
  )
})
