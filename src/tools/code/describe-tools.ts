import * as z from 'zod'
import type { Served, View } from '../../core/access.ts'
import { isAppOnly } from '../../core/apps.ts'
import { ToolwayError } from '../../core/errors.ts'
import { structuredResult } from '../../core/result.ts'
import { charactersPerToken } from '../../core/tokens.ts'
import type { Wait } from '../../core/waiting.ts'
import { defineTool, type Tool } from '../define-tool.ts'
import { waitFor } from '../meta/nested-call.ts'
import { agentId, type MetaToolsOptions } from '../meta/shared.ts'
import { declareServers, toolDeclaration } from './declarations/schema-type.ts'
import { visibleLine } from './text.ts'
import { type Names, programNames } from './tool-names.ts'

/** Max characters per tool; types beyond that become `unknown`. */
const maxToolCharacters = 6000

const describeToolsInput = z.object({
  agent_id: agentId,
  names: z
    .array(z.string().min(1).max(300))
    .min(1)
    .max(50)
    .describe('Names of the form "server.tool", from search_tools.'),
  max_tokens: z.int().min(100).max(20_000).default(4000).describe('Omit declarations beyond this number of tokens.'),
})

/** Describes the requested tools as TypeScript declarations, for models that write programs (B9). */
export const describeToolsTool = ({ access, asAgent }: MetaToolsOptions): Tool =>
  defineTool({
    name: 'describe_tools',
    title: 'Describe tools',
    description:
      'Returns TypeScript declarations (arguments, results, descriptions) for tools that search_tools found. ' +
      'Programs in execute_code call them as: await tools.server.tool(args).',
    input: describeToolsInput,
    readOnly: true,
    async run({ agent_id, names, max_tokens }, { call }) {
      const view = access.view(asAgent(call, agent_id))
      // Programs cannot call tools that run other calls, and they use other names for the meta-tools.
      const usable = ({ entry }: Served) =>
        !entry.traits.carries && entry.server !== call.entry.server && !isAppOnly(entry.definition)
      const unknown: { name: string; message: string }[] = []
      const found = new Map<Served['entry'], Served>()
      for (const name of new Set(names)) {
        const meant = await meantTools(view, name, usable, waitFor(call))
        if (typeof meant === 'string') unknown.push({ name, message: meant })
        else for (const served of meant) found.set(served.entry, served)
      }
      const { declarations, leftOut } = declareFitting([...found.values()], programNames(view.list('tool')), max_tokens)
      const tokens = Math.ceil(declarations.length / charactersPerToken)
      const answer = {
        declarations,
        unknown: unknown.length > 0 ? unknown : undefined,
        left_out: leftOut.length > 0 ? leftOut : undefined,
        tokens_used: tokens,
      }
      const listing = { requested: names.length, returned: found.size - leftOut.length, tokens }
      return { ...structuredResult(answer), listing }
    },
  })

type Usable = (served: Served) => boolean

async function meantTools(view: View, name: string, usable: Usable, wait: Wait): Promise<readonly Served[] | string> {
  const spelling = name.startsWith('tools.') ? name.slice('tools.'.length) : name
  const spelt = () => bySpelling(programNames(view.list('tool')), spelling).filter(usable)
  const known = spelt()
  if (known.length > 0) return known
  try {
    const { entry } = await view.resolve('tool', spelling, { ...wait, operation: 'find' })
    const served = view.list('tool').filter((one) => one.entry === entry && usable(one))
    if (served.length > 0) return served
    // If the caller may not use the server, the message must not reveal whether the server has the tool.
    const closed = view.refusal(entry.server)?.message
    return closed ?? `${visibleLine(spelling, 100)} is not a tool that your programs may use.`
  } catch (thrown) {
    // `resolve` may have started the server, so its tools may be known now: look for the identifiers again.
    const woken = spelt()
    return woken.length > 0 ? woken : ToolwayError.from(thrown).message
  }
}

/** Finds tools spelt as `server.tool`. Server names may contain dots, so it tries every dot as the separator. */
function bySpelling(names: Names, spelling: string): Served[] {
  const found = new Set<Served>()
  for (let dot = spelling.indexOf('.'); dot !== -1; dot = spelling.indexOf('.', dot + 1)) {
    const served = names.find(spelling.slice(0, dot), spelling.slice(dot + 1))
    if (served) found.add(served)
  }
  return [...found]
}

/** Declares tools in order while they fit into `tokens`: always the first tool, and never only part of a tool. */
function declareFitting(tools: readonly Served[], names: Names, tokens: number) {
  const servers = new Map<string, string[]>()
  const leftOut: string[] = []
  let left = tokens * charactersPerToken
  for (const served of tools) {
    const { server, tool } = names.identifiers(served)
    const { name, exactSchema } = served.entry
    const definition = exactSchema ? { ...served.entry.definition, inputSchema: exactSchema } : served.entry.definition
    const first = servers.size === 0
    const text = toolDeclaration({ identifier: tool, name, definition }, Math.min(maxToolCharacters, left))
    if (left < text.length && !first) leftOut.push(`${server}.${tool}`)
    else servers.set(server, [...(servers.get(server) ?? []), text])
    left -= first || left >= text.length ? text.length : 0
  }
  return { declarations: declareServers(servers), leftOut }
}
