import { parse } from 'yaml'
import { type Config, configSchema } from '../../src/config/schema.ts'
import { noAudit } from '../../src/core/audit.ts'
import { callOf, entryOf } from '../../src/core/call.fixture.ts'
import type { Caller, Handler } from '../../src/core/call.ts'
import type { Denial } from '../../src/core/decision.ts'
import { silentLog } from '../../src/core/log.ts'
import { Json } from '../../src/json/json.ts'
import { breakerConfigs, createBreakers } from '../../src/pipeline/breaker.ts'
import { bulkhead } from '../../src/pipeline/bulkhead.ts'
import { approvalBy, openPipeline } from '../../src/pipeline/pipeline.fixture.ts'
import { retry } from '../../src/pipeline/retry.ts'
import { createApprovalRules } from '../../src/policy/approvals.ts'
import { argumentValidator } from '../../src/policy/arguments/validate.ts'
import { Policy } from '../../src/policy/decide.ts'
import { compileGuards } from '../../src/policy/guards/index.ts'
import { compileLimits } from '../../src/policy/limits.ts'
import { memoryBuckets } from '../../src/stores/buckets.ts'
import { createManualClock } from '../../tests/fixtures/clock.ts'

/** A call that fails: its configuration, tool and caller. */
export interface Trial {
  /** The relevant part of the configuration, in YAML. */
  readonly config?: string
  readonly server: string
  readonly tool: string
  readonly arguments?: Record<string, unknown>
  readonly inputSchema?: Record<string, unknown>
  readonly caller?: Partial<Caller>
  /** What the server does; by default it answers immediately. */
  readonly run?: Handler
  /** Why it fails, as a continuation of "a call to …". */
  readonly circumstances?: string
  /** Number of earlier calls, which are not awaited. */
  readonly before?: number
  readonly quarantined?: () => Denial
  readonly changes?: Parameters<typeof openPipeline>[0]
}

/** Runs the call through a real pipeline and returns the error. */
export async function thrownBy(trial: Trial): Promise<unknown> {
  const { server, tool: name, run, inputSchema, caller, before = 0 } = trial
  const config = configOf(trial.config)
  const clock = createManualClock()
  const policy = new Policy({ config, quarantined: trial.quarantined ?? (() => undefined) })
  const guards = Object.entries(config.mcpServers).flatMap(([own, one]) => {
    const check = compileGuards(one.guards, { server: own })
    return check ? [[own, check] as const] : []
  })
  using breakers = createBreakers({ configOf: breakerConfigs(config), clock, log: silentLog, random: () => 1 })
  const approvalRules = createApprovalRules(config)
  const { handle } = openPipeline({
    audit: noAudit,
    decide: policy.decide,
    validate: argumentValidator({ log: silentLog }),
    guards: new Map(guards),
    limits: { limitsOf: compileLimits(config), buckets: memoryBuckets(), clock },
    approval: { ...approvalBy(undefined), need: ({ entry, caller }) => approvalRules.need(entry, caller.agent) },
    retry: retry({ ...config.retry, clock, log: silentLog }),
    breaker: breakers.step,
    bulkhead: bulkhead({
      serverLimit: (own) => config.mcpServers[own]?.concurrency,
      agentLimit: (agent) => config.agents[agent]?.concurrency,
      total: () => config.limits.concurrency,
      queue: () => config.limits.queue,
      clock,
    }).step,
    clock,
    ...trial.changes,
  })
  const { traits } = entryOf()
  const entry = entryOf({
    server,
    name,
    definition: inputSchema ? { inputSchema } : {},
    traits: { ...traits, timeoutKey: 'defaults.timeout' },
    ...(run && { run }),
  })
  const credential = { ...callOf().caller, ...caller }
  const input = { arguments: Json.of(trial.arguments ?? {}), meta: {} }
  const call = async () => {
    try {
      const agent = policy.agentOf(credential, caller?.agent)
      return await handle(callOf({ entry, caller: { ...credential, agent }, input }))
    } catch (thrown) {
      return thrown
    }
  }
  for (let made = 0; made < before; made++) await Promise.race([call(), clock.pass(0)])
  let over = false
  const outcome = call().finally(() => {
    over = true
  })
  // Pauses and deadlines pass as soon as nothing else is left to happen.
  while (!over) await clock.pass(1_000)
  return outcome
}

const configOf = (written = ''): Config => configSchema.parse(parse(written) ?? {}) as Config
