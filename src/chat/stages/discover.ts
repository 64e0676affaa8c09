import type { Served, View } from '../../core/access.ts'
import { isAppOnly } from '../../core/apps.ts'
import { endWith } from '../../core/deadline.ts'
import type { Entry } from '../../core/entry.ts'
import { metaSource } from '../../core/source.ts'
import { asRecord } from '../../lib/is-record.ts'
import { compilePattern } from '../../lib/wildcard.ts'
import type { ChatRun } from '../chat-run.ts'
import { questions } from '../conversation.ts'
import { type ChatTool, catalogTool, clientTool, namedTool, ToolSet } from '../tool-set.ts'

/** The candidate tools: the client's own tools, and the best matches among the tools that the caller may see; or the named one. */
export async function discoverTools(run: ChatRun): Promise<ToolSet> {
  const { access, request, signal, log } = run
  const named = namedTool(request)
  if (named) return new ToolSet(kept(clientTool(named), named.name))
  const own = (request.tools ?? []).flatMap((tool) => kept(clientTool(tool), tool.name))
  const taken = new Set(own.map(({ callable }) => callable.name))
  const view = access.view(request.caller)
  if (questions(run.messages).length <= 1) view.conversationStarted?.()
  await endWith(signal, view.ready())
  const code = codePreset(run)
  const only = request.only?.map(compilePattern)
  const isWanted = (tool: string): boolean => only?.some((matches) => matches(tool)) ?? true
  const mayOffer = ({ name, entry }: Served): boolean =>
    // Skip meta-tools, because the loop does their work, and tools that have the same name as a client tool.
    entry.server !== metaSource &&
    !isAppOnly(entry.definition) &&
    !taken.has(name) &&
    (isCode(entry) ? code !== undefined : (run.mayOffer?.(entry) ?? true)) &&
    isWanted(`${entry.server}.${entry.name}`)
  const found = await bestTools(run, view, mayOffer)
  const served = found.flatMap((tool) => {
    const preset = code && isCode(tool.entry) ? withinLimit(code, tool) : undefined
    return kept(catalogTool(tool, preset), tool.name)
  })
  const inOrder = (one: ChatTool, other: ChatTool) => (one.callable.name < other.callable.name ? -1 : 1)
  return new ToolSet([...own, ...served].sort(inOrder))

  function kept(tool: ChatTool | undefined, name: string): readonly ChatTool[] {
    if (tool) return [tool]
    const why = 'its input schema does not describe an object'
    log.warn({ chat: request.id, tool: name }, `tool is not offered to models: ${why}`)
    return []
  }
}

/** At most `maxTools` tools, chosen by search. */
async function bestTools(run: ChatRun, view: View, mayOffer: (served: Served) => boolean): Promise<readonly Served[]> {
  const all = view.list('tool').filter(mayOffer)
  const { maxTools } = run.config
  if (all.length <= maxTools) return all
  // Always include code execution: it also helps with questions for which the search would not find it.
  const always = all.filter(({ entry }) => isCode(entry))
  const names = new Set(all.map(({ name }) => name))
  const limit = maxTools + (view.list('tool').length - all.length)
  const found = await searchAll(questions(run.messages), async (query) => {
    const { tools } = await view.search(query, { limit })
    return tools.filter(({ name }) => names.has(name))
  })
  // Search misses synonyms ("how warm" means temperature), so fill the list with tools from every server.
  const others = inTurns(Map.groupBy(all, ({ entry }) => entry.server).values())
  return uniqueByName([...always, ...found, ...others]).slice(0, maxTools)
}

const isCode = ({ server, name }: Entry): boolean => server === 'native' && name === 'execute_code'

interface CodePreset extends Record<string, unknown> {
  readonly environment: string
  readonly timeout_ms: number
}

/** Preset arguments for code execution; `undefined` if it is not allowed. */
function codePreset({ config, request }: ChatRun): CodePreset | undefined {
  const { enabled, environment, timeout } = config.codeExecution
  const options = request.codeExecution ?? (enabled ? {} : false)
  if (options === false) return undefined
  return { environment: options.environment ?? environment, timeout_ms: options.timeoutMs ?? timeout }
}

/** The tool refuses a timeout above its own limit (`sandbox.timeout`), and the model could not choose a shorter one. */
function withinLimit(preset: CodePreset, { definition }: Served): CodePreset {
  const { timeout_ms: timeout } = asRecord(asRecord(definition.inputSchema).properties)
  const { maximum } = asRecord(timeout)
  return typeof maximum === 'number' ? { ...preset, timeout_ms: Math.min(preset.timeout_ms, maximum) } : preset
}

/** How many of the user's messages to search with. */
const maxSearchMessages = 3

/** Searches with each of the user's latest messages, newest first, because "and in Rome?" says little on its own. */
export async function searchAll<Found extends Pick<Served, 'name'>>(
  messages: readonly string[],
  search: (query: string) => Promise<readonly Found[]>,
): Promise<readonly Found[]> {
  const found = await Promise.all(messages.slice(0, maxSearchMessages).map((message) => search(message)))
  return uniqueByName(found.flat())
}

/** Removes duplicates; each name stays at its first position. */
const uniqueByName = <Found extends Pick<Served, 'name'>>(found: readonly Found[]): readonly Found[] => [
  ...new Map(found.map((one) => [one.name, one])).values(),
]

/** The items of all lists: first those at the first position of each list, then those at the second, and so on. */
function inTurns<Item>(lists: Iterable<readonly Item[]>): readonly Item[] {
  const places = [...lists].flatMap((list) => list.map((item, place) => ({ item, place })))
  return places.sort((one, other) => one.place - other.place).map(({ item }) => item)
}
