import type { Served } from '../core/access.ts'
import type { OfferedTool } from '../core/chat.ts'
import { didYouMean } from '../lib/near.ts'
import { sanitizeSchema } from './constrain/sanitize-schema.ts'
import type { CallableTool } from './constrain/stage-schemas.ts'
import { oneLine } from './truncate.ts'

/** A tool that a model is offered. */
export interface ChatTool {
  /** As the model sees it. */
  readonly callable: CallableTool
  /** Where it is in the catalog; none where the client runs it itself. */
  readonly served?: Served
  /** Arguments that are not for the model to choose. */
  readonly preset?: Readonly<Record<string, unknown>>
}

/** The tools that a model may call, and no others. */
export interface ToolSet {
  readonly tools: readonly ChatTool[]
  /** The tool of a name; also as `server.tool`, or by its own name where that is the only one. */
  find(name: string): ChatTool | undefined
  /** Why there is no tool of a name, and which may have been meant. */
  missing(name: string): string
}

export function createToolSet(tools: readonly ChatTool[]): ToolSet {
  const byName = new Map(tools.map((tool) => [tool.callable.name, tool]))
  const names = [...byName.keys()]
  const otherwise = names.length > 0 ? `; there are ${names.slice(0, 32).join(', ')}.` : '; there are none.'
  return {
    tools,
    find(name) {
      const exact = byName.get(name)
      if (exact) return exact
      const meant = tools.filter(({ served }) => served && spellings(served).includes(name))
      return meant.length === 1 ? meant[0] : undefined
    },
    missing: (name) =>
      `There is no tool ${JSON.stringify(name.slice(0, 100))} here${didYouMean(name, names, otherwise)}`,
  }
}

const spellings = ({ entry }: Served): readonly string[] => [
  entry.name,
  ...['.', '::', '/', '__'].map((separator) => `${entry.server}${separator}${entry.name}`),
]

/** A tool of the catalog, unless nothing can be said about its arguments. */
export function catalogTool(served: Served, preset?: ChatTool['preset']): ChatTool | undefined {
  const { name, definition } = served
  const sound = sanitizeSchema(definition.inputSchema ?? {})
  if (!sound) return undefined
  const parameters = preset ? without(sound, Object.keys(preset)) : sound
  const description = typeof definition.description === 'string' ? { description: definition.description } : {}
  return { callable: { name, ...description, parameters }, served, ...(preset && { preset }) }
}

/** A tool that the client runs. */
export function clientTool({ name, description, parameters = {} }: OfferedTool): ChatTool | undefined {
  const sound = sanitizeSchema(parameters)
  return sound && { callable: { name, ...(description !== undefined && { description }), parameters: sound } }
}

function without(schema: CallableTool['parameters'], names: readonly string[]): CallableTool['parameters'] {
  const kept = (all: object) => Object.fromEntries(Object.entries(all).filter(([name]) => !names.includes(name)))
  const { properties, required, ...rest } = schema
  return {
    ...rest,
    properties: kept(properties as object),
    ...(Array.isArray(required) && { required: required.filter((name) => !names.includes(name)) }),
  }
}

const maxDescription = 300

/** The tools for a model to choose from, one to a line. */
export const describeTools = (tools: readonly ChatTool[]): string =>
  tools
    .map(({ callable: { name, description = '', parameters } }) => {
      const fields = Object.keys((parameters.properties as object | undefined) ?? {}).join(', ')
      return `- ${name}(${fields}): ${oneLine(description, maxDescription)}`
    })
    .join('\n')

/** Whether a call is right, and for the client to make. */
export const isForClient = (call: { readonly tool?: ChatTool; readonly problem?: string }): boolean =>
  call.problem === undefined && call.tool !== undefined && call.tool.served === undefined
