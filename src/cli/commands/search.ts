import { existsSync } from 'node:fs'
import { expansionOf, learnedFrom } from '../../catalog/search/learning.ts'
import { type LearnedRow, LearningTable, learnedPath } from '../../catalog/search/learning-table.ts'
import { SearchIndex, toolId } from '../../catalog/search/search-index.ts'
import type { Config } from '../../config/schema.ts'
import { toolsForModels } from '../../core/apps.ts'
import { metaSource } from '../../core/source.ts'
import { pluralize } from '../../lib/message-text.ts'
import { audited } from '../audited.ts'
import type { OptionsOf } from '../command-table.ts'
import { CommandError, createOutput, exit, type Shell } from '../kit.ts'
import { load } from '../load.ts'
import { openBriefly } from '../open.ts'
import { oneLine } from '../table.ts'
import { waitForTools } from './tools.ts'

interface ExplainedTool {
  readonly tool: string
  readonly score: number
  readonly base: number
  readonly learned: number
  /** How many learned queries it has, and of how many principals. What they say is not shown. */
  readonly queries: number
  readonly principals: number
}

/** Shows what a search finds, and how much of each score was learned. */
export async function explainSearch(shell: Shell, query: string, options: OptionsOf<'search explain'>): Promise<void> {
  const output = createOutput(shell, options.json)
  const loaded = await load(shell, options)
  await using gateway = await openBriefly(shell, options, loaded)
  const caller = gateway.localAs(options.agent)
  const view = gateway.view(caller)
  await waitForTools(view, shell, options.wait)
  const { search, stores } = loaded.config
  const { pool, halfLife } = search
  const rows = storedRows(stores).filter((row) => pool === 'all' || row.agent === caller.agent)
  const tools = toolsForModels(view.list('tool')).filter(({ entry }) => entry.server !== metaSource)
  const index = new SearchIndex()
  index.update(tools)
  const learned = learnedFrom(search.learn ? rows : [], search)
  const sources = [expansionOf(learned, options.principal ?? caller.principal, halfLife, Date.now())]
  const found = index.explain(query, { limit: options.top, among: tools, sources })
  const ofTool = Map.groupBy(rows, ({ tool }) => tool)
  const matches = found.map(({ item, base, added }): ExplainedTool => {
    const tool = toolId(item.entry)
    const own = ofTool.get(tool) ?? []
    const counts = { queries: own.length, principals: new Set(own.map(({ principal }) => principal)).size }
    return { tool, score: roundScore(base + added), base: roundScore(base), learned: roundScore(added), ...counts }
  })
  const { learn } = search
  if (options.json) return output.value({ agent: caller.agent, learn, pool, matches })
  if (matches.length === 0) output.note('No tool matches these words.')
  else
    output.table<ExplainedTool>(matches, [
      { title: 'TOOL', value: ({ tool }) => oneLine(tool), whole: true },
      { title: 'SCORE', value: ({ score }) => String(score), whole: true },
      { title: 'BASE', value: ({ base }) => String(base) },
      { title: 'LEARNED', value: (row) => String(row.learned) },
      { title: 'FROM', value: (row) => (row.queries > 0 ? fromText(row) : '') },
    ])
  if (!learn) output.note('Nothing is learned, because `search.learn` is off.')
}

const fromText = ({ queries, principals }: ExplainedTool): string =>
  `${queries} learned, ${pluralize(principals, 'principal')}`

const roundScore = (score: number): number => Math.round(score * 1000) / 1000

/** Forgets learned queries. A running gateway notices within seconds. */
export async function forgetSearches(shell: Shell, options: OptionsOf<'search forget'>): Promise<void> {
  const output = createOutput(shell, options.json)
  const { config } = await load(shell, options)
  const { agent, tool } = options
  const forget = async () => {
    if (!existsSync(learnedPath(config.stores.path))) return 0
    using table = new LearningTable(config.stores.path, () => {})
    const forgotten = table.forget({ agent, tool })
    if (forgotten === undefined)
      throw new CommandError('The learned searches are being written; try again.', {
        code: 'BUSY',
        exitCode: exit.unavailable,
      })
    return forgotten
  }
  const forgotten = await audited(config, { operation: 'forget_searches', arguments: { agent, tool } }, forget)
  if (options.json) output.value({ forgotten })
  else output.print(`Queries forgotten: ${forgotten}`)
}

function storedRows({ path }: Config['stores']): readonly LearnedRow[] {
  if (!existsSync(learnedPath(path))) return []
  using table = new LearningTable(path, () => {})
  return table.changed() ?? []
}
