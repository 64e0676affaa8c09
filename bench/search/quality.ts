import type { Definition } from '../../src/core/entry.ts'
import { catalogOf } from './catalog-of.ts'
import { type Times, timed, timesOf } from './times.ts'

/** Tools, and tasks with the names of the tools that each needs. */
export interface DataSet {
  readonly name?: string
  readonly tools: readonly Definition[]
  readonly queries: readonly { readonly query: string; readonly tools: readonly string[] }[]
}

export interface Quality extends Times {
  readonly name: string
  readonly tools: number
  readonly queries: number
  /** The share, in per cent, of the tools needed that are among the first 1, 5 and 10. */
  readonly recall: Readonly<Record<1 | 5 | 10, number>>
  readonly ndcg10: number
}

/** How well tools are found for the tasks of a data set; of every second task only, if a half is named. */
export async function qualityOf(set: DataSet, name: string, half?: 0 | 1): Promise<Quality> {
  using catalog = catalogOf([{ server: 'x', tools: set.tools }])
  const queries = set.queries.filter((_, at) => half === undefined || at % 2 === half)
  const sums = { 1: 0, 5: 0, 10: 0, ndcg: 0 }
  const spent: (readonly number[])[] = []
  await catalog.view.search('what is indexed at the first question', { limit: 1 })
  for (const { query, tools } of queries) {
    const wanted = new Set(tools)
    const { ms, answer } = await timed(() => catalog.view.search(query, { limit: 10 }))
    spent.push(ms)
    const hits = answer.tools.map(({ entry }) => (wanted.has(entry.name) ? 1 : 0))
    for (const depth of [1, 5, 10] as const) sums[depth] += total(hits.slice(0, depth)) / wanted.size
    sums.ndcg += gain(hits) / gain(Array.from({ length: Math.min(10, wanted.size) }, () => 1))
  }
  const mean = (sum: number) => Math.round((1000 * sum) / queries.length) / 10
  return {
    name: set.name ?? name,
    tools: set.tools.length,
    queries: queries.length,
    recall: { 1: mean(sums[1]), 5: mean(sums[5]), 10: mean(sums[10]) },
    ndcg10: mean(sums.ndcg),
    ...timesOf(spent),
  }
}

const total = (numbers: readonly number[]) => numbers.reduce((sum, number) => sum + number, 0)

/** A hit counts less the further down it stands. */
const gain = (hits: readonly number[]) => total(hits.map((hit, at) => hit / Math.log2(at + 2)))
