import type { ScorePart, ScoreSource } from '../../src/catalog/search/combine-scores.ts'
import { LearnedQueries, type LearnedQuery, learnedWords } from '../../src/catalog/search/learned-queries.ts'
import { expansionOf } from '../../src/catalog/search/learning.ts'
import { SearchIndex } from '../../src/catalog/search/search-index.ts'
import type { Served } from '../../src/core/access.ts'
import type { DataSet } from './quality.ts'

export interface Learned {
  readonly name: string
  readonly rows: readonly string[]
}

type Task = DataSet['queries'][number]

const pastPerTool = 3

/**
 * How much three past queries per tool help. Half of the tools with more than three tasks get a history, of three of
 * these tasks; the others are held out. Tasks that need copies of a tool with a history (the same name with another
 * number) are told apart: which of the copies counts as right is arbitrary, and history decides between them.
 */
export function learnedQuality(set: DataSet, name: string): Learned {
  const random = randomFrom(5)
  const tasks = shuffled(set.queries, random)
  const ofTool = new Map<string, Task[]>()
  for (const task of tasks) for (const tool of task.tools) ofTool.set(tool, [...(ofTool.get(tool) ?? []), task])
  const many = [...ofTool].filter(([, own]) => own.length > pastPerTool).map(([tool]) => tool)
  const taught = new Set(shuffled(many, random).slice(0, Math.ceil(many.length / 2)))
  const copied = new Set([...taught].map(withoutNumber))
  const past = [...taught].flatMap((tool) =>
    (ofTool.get(tool) ?? []).slice(0, pastPerTool).map((task) => ({ tool, task })),
  )
  const used = new Set(past.map(({ task }) => task))
  const held = tasks.filter((task) => !used.has(task))
  const groups: Readonly<Record<string, readonly Task[]>> = {
    'with history': held.filter(({ tools }) => tools.every((tool) => taught.has(tool))),
    'without history': held.filter(({ tools }) => !tools.some((tool) => copied.has(withoutNumber(tool)))),
    'copies of tools with history': held.filter(
      ({ tools }) => !tools.some((tool) => taught.has(tool)) && tools.some((tool) => copied.has(withoutNumber(tool))),
    ),
    all: held,
  }
  const queries = new LearnedQueries(
    past.map(({ tool, task }): LearnedQuery => {
      return { tool: `x.${tool}`, principal: undefined, definition: undefined, words: learnedWords(task.query), at: 0 }
    }),
  )
  const learned = expansionOf(queries, 'bench', 1, 0)
  const variants: Readonly<Record<string, readonly ScoreSource[]>> = {
    lexical: [],
    '+ learned': [learned],
    'naive: added with a weight of 5': [(question) => naive(learned(question))],
  }
  const index = new SearchIndex()
  const items = set.tools.map((definition) => ({
    name: String(definition.name),
    definition,
    entry: { kind: 'tool', server: 'x', name: String(definition.name), definition, traits, run },
  })) satisfies Served[]
  index.update(items)
  const found = Object.entries(groups).flatMap(([group, own]) =>
    own.length === 0
      ? []
      : Object.entries(variants).map(([variant, sources]) => {
          const recall = recallOf(own, (query) => index.search(query, { limit: 10, among: items, sources }).items)
          return `${group} (${own.length} tasks), ${variant}: R@1 ${recall[0]} R@5 ${recall[1]} R@10 ${recall[2]}`
        }),
  )
  return { name: set.name ?? name, rows: found }
}

/** Without the limits on what history may do. */
function naive({ scores }: ScorePart): ScorePart {
  const best = Math.max(...scores.values())
  return { scores: new Map([...scores].map(([place, score]) => [place, score / best])), weight: 5 }
}

function recallOf(tasks: readonly Task[], search: (query: string) => readonly Served[]): readonly string[] {
  const sums = [0, 0, 0]
  for (const { query, tools } of tasks) {
    const wanted = new Set(tools)
    const hits = search(query).map(({ name }) => Number(wanted.has(name)))
    for (const [at, depth] of [1, 5, 10].entries())
      sums[at] = (sums[at] as number) + hits.slice(0, depth).reduce((sum, hit) => sum + hit, 0) / wanted.size
  }
  return sums.map((sum) => ((100 * sum) / tasks.length).toFixed(1))
}

const withoutNumber = (tool: string) => tool.replace(/_\d+$/, '')
const traits = { readOnly: true, idempotent: true, timeoutMs: 1 }
const run = () => Promise.reject(new Error('nothing is called here'))

function shuffled<Item>(list: readonly Item[], random: () => number): Item[] {
  return list
    .map((item) => ({ item, at: random() }))
    .sort((a, b) => a.at - b.at)
    .map(({ item }) => item)
}

/** The same numbers in every run. */
function randomFrom(seed: number): () => number {
  let state = seed
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 2 ** 32
  }
}
