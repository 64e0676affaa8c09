import type { Served, View } from '../../core/access.ts'
import type { ChatRequest } from '../../core/chat.ts'
import { waitFor } from '../../core/deadline.ts'
import type { Entry } from '../../core/entry.ts'
import { matches } from '../../lib/wildcard.ts'
import type { ChatRun } from '../chat-run.ts'
import { questions } from '../conversation.ts'
import { type ChatTool, catalogTool, clientTool, createToolSet, type ToolSet } from '../tool-set.ts'

/** The tools that come into question for what the user wants: the client's own, and the best of the caller's view. */
export async function discover(run: ChatRun): Promise<ToolSet> {
  const { access, request, signal, log } = run
  const own = (request.tools ?? []).flatMap((tool) => kept(clientTool(tool), tool.name))
  const taken = new Set(own.map(({ callable }) => callable.name))
  const view = access.view(request.caller)
  await waitFor(view.ready(), signal)
  const code = codePreset(run)
  const mayOffer = ({ name, entry }: Served): boolean =>
    // What meta-tools do, the loop does itself. The client's own tool is the one that it means by a name.
    entry.server !== 'toolway' && !taken.has(name) && (!isCode(entry) || code !== undefined) && isWanted(request, entry)
  const found = best(run, view, mayOffer)
  const served = found.flatMap((tool) => kept(catalogTool(tool, isCode(tool.entry) ? code : undefined), tool.name))
  const inOrder = (one: ChatTool, other: ChatTool) => (one.callable.name < other.callable.name ? -1 : 1)
  return createToolSet([...own, ...served].sort(inOrder))

  function kept(tool: ChatTool | undefined, name: string): readonly ChatTool[] {
    if (tool) return [tool]
    log.warn(
      { chat: request.id, tool: name },
      'a tool is not offered to models: its schema does not describe an object',
    )
    return []
  }
}

/** At most `maxTools` of the tools; all of them where there are no more, since nothing has to be left out then. */
function best(run: ChatRun, view: View, mayOffer: (served: Served) => boolean): readonly Served[] {
  const all = view.list('tool').filter(mayOffer)
  const most = run.config.maxTools
  if (all.length <= most) return all
  // Running code helps with anything, so no search has to find it.
  const always = all.filter(({ entry }) => isCode(entry))
  const names = new Set(all.map(({ name }) => name))
  const limit = most + (view.list('tool').length - all.length)
  const found = searchAll(questions(run.messages), (query) =>
    view.search(query, { limit }).tools.filter(({ name }) => names.has(name)),
  )
  // Words can miss what is meant ("how warm" is a temperature): places that are left go to some tools of every server.
  const others = inTurns(Map.groupBy(all, ({ entry }) => entry.server).values())
  return byName([...always, ...found, ...others]).slice(0, most)
}

const isCode = ({ server, name }: Entry): boolean => server === 'native' && name === 'execute_code'

const isWanted = ({ only }: ChatRequest, { server, name }: Entry): boolean =>
  only === undefined || only.some((pattern) => matches(pattern, `${server}.${name}`))

/** What a model cannot choose about running code; `undefined` where it may not run any. */
function codePreset({ config, request }: ChatRun): Record<string, unknown> | undefined {
  const { enabled, environment, timeout } = config.codeExecution
  const asked = request.codeExecution ?? (enabled ? {} : false)
  if (asked === false) return undefined
  return { environment: asked.environment ?? environment, timeout_ms: asked.timeoutMs ?? timeout }
}

/** How far back a conversation tells what its last message is about. */
const maxMessages = 3

/**
 * Searches for what was asked last and for what was asked before, since "and in Rome?" says little by itself. What the
 * last message finds comes first. A search takes a task of several steps apart by itself.
 */
export function searchAll<Found extends { readonly name: string }>(
  messages: readonly string[],
  search: (query: string) => readonly Found[],
): readonly Found[] {
  return byName(messages.slice(0, maxMessages).flatMap((message) => search(message)))
}

/** Each of them once, where it stands first. */
const byName = <Found extends { readonly name: string }>(found: readonly Found[]): readonly Found[] => [
  ...new Map(found.map((one) => [one.name, one])).values(),
]

/** The first of each list, then the second of each, and so on. */
function inTurns<Item>(given: Iterable<readonly Item[]>): readonly Item[] {
  const lists = [...given]
  const longest = Math.max(0, ...lists.map(({ length }) => length))
  return Array.from({ length: longest }, (_, place) => lists.flatMap((list) => list.slice(place, place + 1))).flat()
}
