import type { Aim, Sample } from '../load/orders.ts'
import type { Arm, Series } from '../measure/rounds.ts'
import { type Listening, startChild } from '../targets/child.ts'

export const yardstick = 'bare proxy'
export const yardstickAgain = 'bare proxy again'

/** The yardstick twice, in two processes: what it shows against itself is the noise of the machine. */
export interface Yardstick {
  readonly processes: readonly [Listening, Listening]
  /** Both as arms. */
  arms(aim: (proxy: Listening) => Promise<Aim>): Promise<readonly [Arm, Arm]>
}

export async function startYardstick(open: AsyncDisposableStack, target: string): Promise<Yardstick> {
  const start = async () => open.use(await startChild('./bare-proxy.ts', [target]))
  const processes = [await start(), await start()] as const
  return {
    processes,
    arms: async (aim) => [
      { name: yardstick, aim: await aim(processes[0]), pids: [processes[0].pid] },
      { name: yardstickAgain, aim: await aim(processes[1]), pids: [processes[1].pid] },
    ],
  }
}

export const samplesOf = ({ samples }: Series, name: string): readonly Sample[] => samples.get(name) ?? []

export const yardsticksOf = (series: Series) =>
  [samplesOf(series, yardstick), samplesOf(series, yardstickAgain)] as const
