import { startChild } from './child.ts'
import { openTarget } from './target.ts'

export interface ListTimes {
  /** From the start of the process to the first whole answer. */
  readonly startToAnswerMs: number
  readonly firstMs: number
  /** Median of those after the first. */
  readonly laterMs: number
}

/** `tools/list` over 1,000 tools on 20 servers: fills the store with one start and measures the second one. */
export async function measureList(configFile: string): Promise<ListTimes> {
  await listOnce(configFile, 1)
  const { startToAnswerMs, times } = await listOnce(configFile, 50)
  const [first, ...later] = times as [number, ...number[]]
  return { startToAnswerMs, firstMs: first, laterMs: later.sort((a, b) => a - b)[later.length >> 1] as number }
}

async function listOnce(configFile: string, repeats: number): Promise<{ startToAnswerMs: number; times: number[] }> {
  const start = performance.now()
  await using child = await startChild('../src/cli/main.ts', ['serve', '--port', '0', '--json', '--config', configFile])
  await using target = await openTarget({ ...child, name: 'Toolway', tool: 'shelf0.tool_0', connections: 1 })
  const times: number[] = []
  let startToAnswerMs = 0
  for (let repeat = 0; repeat < repeats; repeat++) {
    const before = performance.now()
    await target.ask('tools/list', {}, 'shelf19__tool_49')
    times.push(performance.now() - before)
    startToAnswerMs ||= performance.now() - start
  }
  return { startToAnswerMs, times }
}
