import type { Served } from '../core/access.ts'
import type { ChatRequest, OfferedTool } from '../core/chat.ts'
import { seenName } from '../core/entry.ts'
import { quote } from '../lib/message-text.ts'
import { didYouMean } from '../lib/similar-text.ts'
import { sanitizeSchema } from './constrain/sanitize-schema.ts'
import type { CallableTool } from './constrain/stage-schemas.ts'
import { displayLine } from './conversation.ts'

export interface ChatTool {
  /** The tool as the model sees it. */
  readonly callable: CallableTool
  /** The catalog entry; undefined for tools that the client runs. */
  readonly served?: Served
  /** Arguments that Toolway sets and the model cannot choose. */
  readonly preset?: Readonly<Record<string, unknown>>
}

export class ToolSet {
  readonly tools: readonly ChatTool[]
  readonly #byName: ReadonlyMap<string, ChatTool>

  constructor(tools: readonly ChatTool[]) {
    this.tools = tools
    this.#byName = new Map(tools.map((tool) => [tool.callable.name, tool]))
  }

  /** Finds a tool by its full name, by `server.tool`, or by its bare name if only one tool has it. */
  find(name: string): ChatTool | undefined {
    const exact = this.#byName.get(name)
    if (exact) return exact
    const candidates = this.tools.filter(({ served }) => served && toolSpellings(served).includes(name))
    return candidates.length === 1 ? candidates[0] : undefined
  }

  /** An error message for an unknown name, with suggestions. */
  missing(name: string): string {
    const names = [...this.#byName.keys()]
    const available = names.length > 0 ? `; available: ${names.slice(0, 32).join(', ')}.` : '; no tools are available.'
    return `There is no tool ${quote(name)}${didYouMean(name, names, available)}`
  }
}

const toolSpellings = ({ entry }: Served): readonly string[] => [
  seenName(entry),
  ...['.', '::', '/', '__'].map((separator) => `${entry.server}${separator}${seenName(entry)}`),
]

/** A tool from the catalog; undefined if its schema does not describe an object. */
export function catalogTool(served: Served, preset?: ChatTool['preset']): ChatTool | undefined {
  const { name, definition } = served
  const sanitized = sanitizeSchema(definition.inputSchema ?? {})
  if (!sanitized) return undefined
  const parameters = preset ? withoutParameters(sanitized, Object.keys(preset)) : sanitized
  const description = typeof definition.description === 'string' ? definition.description : undefined
  return { callable: { name, description, parameters }, served, preset }
}

export function clientTool({ name, description, parameters = {} }: OfferedTool): ChatTool | undefined {
  const sanitized = sanitizeSchema(parameters)
  return sanitized && { callable: { name, description, parameters: sanitized } }
}

function withoutParameters(schema: CallableTool['parameters'], names: readonly string[]): CallableTool['parameters'] {
  const kept = (all: object) => Object.fromEntries(Object.entries(all).filter(([name]) => !names.includes(name)))
  const { properties, required, ...rest } = schema
  const others = Array.isArray(required) ? { required: required.filter((name) => !names.includes(name)) } : {}
  return { ...rest, properties: kept(properties as object), ...others }
}

const maxListedDescription = 300

/** Lists the tools for the model, one per line. */
export const toolLines = (tools: readonly ChatTool[]): string =>
  tools
    .map(({ callable: { name, description = '', parameters } }) => {
      const fields = Object.keys((parameters.properties as object | undefined) ?? {}).join(', ')
      return `- ${name}(${fields}): ${displayLine(description, maxListedDescription)}`
    })
    .join('\n')

/** The tools as JSON, with their schemas. */
export const definitionsOf = (tools: readonly ChatTool[]): string =>
  JSON.stringify(
    tools.map(({ callable: { name, description, parameters } }) => ({ name, description, inputSchema: parameters })),
  )

/** The client's tool that the model must call, if the request names one. */
export const namedTool = ({ toolChoice, tools = [] }: ChatRequest): OfferedTool | undefined =>
  typeof toolChoice === 'object' ? tools.find(({ name }) => name === toolChoice.tool) : undefined

/** The calls without those that are too many for a client that takes only one at a time. */
export function callsToMake<C extends Parameters<typeof isForClient>[0]>(
  { parallelToolCalls }: ChatRequest,
  calls: readonly C[],
): readonly C[] {
  const first = calls.find(isForClient)
  return parallelToolCalls === false ? calls.filter((call) => call === first || !isForClient(call)) : calls
}

/** Whether a call is valid and must be run by the client. */
export const isForClient = (call: { readonly tool?: ChatTool; readonly problem?: string }): boolean =>
  call.problem === undefined && call.tool !== undefined && call.tool.served === undefined
