import type { Source } from '../core/source.ts'
import type { ServerSummary } from '../core/source-status.ts'
import type { Item } from './item.ts'
import type { PerKind } from './parts.ts'

/** The meta-tools: the source that the exposure modes are about. */
export const metaSource = 'toolway'

/** The sources of these items; the meta-tools are not among them. */
export function summariesOf(
  items: PerKind<readonly Item[]>,
  sources: Iterable<Source>,
  mayReach: (server: string) => boolean = () => true,
): readonly ServerSummary[] {
  const usable = new Set<string>()
  const tools = new Map<string, number>()
  for (const list of Object.values(items)) for (const { entry } of list) usable.add(entry.server)
  for (const { entry } of items.tool) tools.set(entry.server, (tools.get(entry.server) ?? 0) + 1)
  // A server that has said nothing yet is shown to whom it may concern: it may have something for this caller.
  const silent = (source: Source) => source.entries().length === 0 && mayReach(source.name)
  const shown = [...sources].filter(
    (source) => source.name !== metaSource && (usable.has(source.name) || silent(source)),
  )
  return shown.map((source) => ({ name: source.name, status: source.status(), tools: tools.get(source.name) ?? 0 }))
}
