import type { Target } from './target.ts'

/** What one target did in all its rounds. */
export interface Sample {
  readonly times: number[]
  /** Seconds under load. */
  seconds: number
}

export interface Measured {
  readonly name: string
  readonly callsPerSecond: number
  readonly p50: number
  readonly p99: number
}

/** Loads each target in turn, round after round, so that a slow moment of the machine hits all of them. */
export async function measure(
  targets: readonly Target[],
  options: { readonly inFlight: number; readonly rounds: number; readonly roundMs: number },
): Promise<Measured[]> {
  const samples = new Map<Target, Sample>(targets.map((target) => [target, { times: [], seconds: 0 }]))
  for (const target of targets) await loadFor(target, options.inFlight, options.roundMs / 4, { times: [], seconds: 0 })
  for (let round = 0; round < options.rounds; round++) {
    for (const [target, sample] of samples) await loadFor(target, options.inFlight, options.roundMs, sample)
  }
  return targets.map((target) => summary(target.name, samples.get(target) as Sample))
}

async function loadFor(target: Target, inFlight: number, ms: number, sample: Sample): Promise<void> {
  const params = { name: target.tool, arguments: { message: 'hello' } }
  const start = performance.now()
  const end = start + ms
  const worker = async () => {
    for (let now = performance.now(); now < end; ) {
      await target.ask('tools/call', params, 'Echo: hello')
      const done = performance.now()
      sample.times.push(done - now)
      now = done
    }
  }
  await Promise.all(Array.from({ length: inFlight }, worker))
  sample.seconds += (performance.now() - start) / 1000
}

function summary(name: string, { times, seconds }: Sample): Measured {
  const sorted = Float64Array.from(times).sort()
  const at = (share: number) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] as number
  return { name, callsPerSecond: times.length / seconds, p50: at(0.5), p99: at(0.99) }
}
