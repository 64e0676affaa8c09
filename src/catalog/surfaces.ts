import type { Exposure } from '../core/access.ts'
import type { ServerSummary } from '../core/source-status.ts'
import { type Item, renamed } from './item.ts'
import { metaSource } from './summaries.ts'

/** The tools that are shown in each exposure mode. */
export type Surfaces = Readonly<Record<Exposure, readonly Item[]>>

/** All that code mode shows (B3): how to find a tool, how to declare it, how to call it. */
const codeTools = [
  { server: metaSource, name: 'search_tools' },
  { server: metaSource, name: 'describe_tools' },
  { server: 'native', name: 'execute_code' },
] as const

/**
 * What each exposure mode shows of the tools that a caller may use. Nothing is shown twice: what goes by several names
 * is listed by its own, and by another one only where that mode knows it so. Whatever is not shown can still be called.
 */
export function surfaces(items: readonly Item[], servers: () => readonly ServerSummary[]): Surfaces {
  const direct = items.filter(({ entry }) => entry.server !== metaSource)
  const meta = items
    .filter(({ entry }) => entry.server === metaSource && !codeTools.some(({ name }) => name === entry.name))
    .map((item) => told(item, servers))
  const code = codeTools.flatMap(({ server, name }) => {
    const goesBy = ({ entry }: Item) => entry.name === name || entry.aliases?.includes(name) === true
    const item = items.find((one) => one.entry.server === server && goesBy(one))
    if (!item) return []
    return [told(item.entry.name === name ? item : renamed(item, name), servers)]
  })
  return { direct, meta, both: [...meta, ...direct], code }
}

/** What tells of servers tells each caller of those that it sees, and of no others. */
function told(item: Item, servers: () => readonly ServerSummary[]): Item {
  const description = item.entry.descriptionFor?.(servers(), item.name)
  if (description === undefined) return item
  const definition = { ...item.definition, description }
  return { ...item, definition, json: JSON.stringify(definition) }
}
