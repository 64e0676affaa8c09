import type { Generator } from '../load/generator-process.ts'
import type { Aim, Sample } from '../load/orders.ts'
import { watchOthers } from './process.ts'

/** One of the things that take turns. */
export interface Arm {
  readonly name: string
  readonly aim: Aim
  /** The processes whose CPU time counts. */
  readonly pids: readonly number[]
  /** Before and after each of its turns. */
  readonly before?: () => Promise<void>
  readonly after?: () => Promise<void>
}

export interface RoundsOptions {
  readonly inFlight: number
  readonly rounds: number
  readonly turnMs: number
  /** A turn ends early after this many calls. */
  readonly most?: number
}

export interface Series {
  readonly inFlight: number
  readonly samples: ReadonlyMap<string, readonly Sample[]>
  /** What other processes took of the machine, round by round, from 0 to 1. */
  readonly others: readonly number[]
  /** Arms that failed, with the first reason. */
  readonly failures: ReadonlyMap<string, string>
}

/** What is compiled while it runs, whoever's it is, is compiled before the first round: gateways run for days. */
const warmMs = 5_000

/** What each turn wastes on getting up to speed again. */
const warmUpShare = 0.2

/** All arms take turns, round after round, each round beginning with another one. An arm that fails is left out. */
export async function runRounds(
  generator: Generator,
  arms: readonly Arm[],
  { inFlight, rounds, turnMs, most }: RoundsOptions,
): Promise<Series> {
  const samples = new Map<string, Sample[]>(arms.map(({ name }) => [name, []]))
  const failures = new Map<string, string>()
  const others: number[] = []

  const turn = async ({ name, aim, pids, before, after }: Arm, ms: number): Promise<Sample | undefined> => {
    if (failures.has(name)) return undefined
    try {
      await before?.()
      const warmUpMs = Math.round(turnMs * warmUpShare)
      const sample = await generator.run({ aim, inFlight, warmUpMs, ms, pids, ...(most !== undefined && { most }) })
      await after?.()
      if (sample.failures === 0 && sample.calls > 0) return sample
      failures.set(name, sample.failure ?? 'no call was answered in time')
    } catch (thrown) {
      failures.set(name, String(thrown))
    }
    return undefined
  }

  for (const arm of arms) await turn(arm, warmMs)
  for (let round = 0; round < rounds; round++) {
    const othersShare = watchOthers()
    for (let step = 0; step < arms.length; step++) {
      const arm = arms[(round + step) % arms.length] as Arm
      const sample = await turn(arm, turnMs)
      if (sample) samples.get(arm.name)?.push(sample)
    }
    others.push(othersShare())
  }
  return { inFlight, samples, others, failures }
}
