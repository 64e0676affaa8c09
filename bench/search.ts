/**
 * `npm run bench:search -- --data FILE …`: how well tools are found for tasks, and how fast. A file holds
 * `{tools: [{name, description, inputSchema}], queries: [{query, tools}]}`. `--half 0|1` takes every second task, to
 * tune on one half and tell of the other; `--tools N` is how many made-up tools the speed is measured among.
 */

import { readFile } from 'node:fs/promises'
import { basename } from 'node:path'
import { parseArgs } from 'node:util'
import { type Learned, learnedQuality } from './search/learned.ts'
import { type DataSet, type Quality, qualityOf } from './search/quality.ts'
import { type Speed, speedOf } from './search/speed.ts'
import type { Times } from './search/times.ts'

const { values } = parseArgs({
  options: {
    data: { type: 'string', multiple: true, default: [] },
    half: { type: 'string' },
    tools: { type: 'string', default: '10000' },
    json: { type: 'boolean', default: false },
  },
})
const half = values.half === undefined ? undefined : values.half === '1' ? 1 : 0
const quality: Quality[] = []
const learned: Learned[] = []
for (const file of values.data) {
  const set = JSON.parse(await readFile(file, 'utf8')) as DataSet
  quality.push(await qualityOf(set, basename(file), half))
  learned.push(learnedQuality(set, basename(file)))
}
const speed = await speedOf(Number(values.tools))
process.stdout.write(
  values.json ? `${JSON.stringify({ quality, learned, speed })}\n` : readable(quality, learned, speed),
)

function readable(sets: readonly Quality[], learned: readonly Learned[], speed: Speed): string {
  const { tools, targetMs, short, long, firstMs, firstBlockMs, changedMs } = speed
  const found = sets.map(
    ({ name, recall, ndcg10, p50Ms, p99Ms, undisturbedP99Ms, ...set }) =>
      `${name}: ${set.queries} tasks, ${set.tools} tools: R@1 ${recall[1]} R@5 ${recall[5]} R@10 ${recall[10]} ` +
      `nDCG@10 ${ndcg10}; ${told({ p50Ms, p99Ms, undisturbedP99Ms })}\n`,
  )
  const met = Math.max(short.p99Ms, long.p99Ms) < targetMs ? 'met' : 'missed'
  return (
    found.join('') +
    learned.flatMap(({ name, rows }) => rows.map((row) => `${name}: ${row}\n`)).join('') +
    `search: among ${tools} tools: a few words ${told(short)}; three sentences ${told(long)}; ` +
    `target ${targetMs} ms at p99 ${met}; the first question ${firstMs.toFixed(0)} ms ` +
    `(longest block ${firstBlockMs.toFixed(0)} ms), ` +
    `after a server of 100 tools has changed ${changedMs.toFixed(1)} ms\n`
  )
}

function told({ p50Ms, p99Ms, undisturbedP99Ms }: Times): string {
  return `${p50Ms.toFixed(2)} ms p50, ${p99Ms.toFixed(2)} ms p99 (${undisturbedP99Ms.toFixed(2)} ms the best of seven)`
}
