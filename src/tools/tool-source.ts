import type { Clock } from '../core/clock.ts'
import type { Entry } from '../core/entry.ts'
import type { Source } from '../core/source.ts'
import type { Tool } from './define-tool.ts'

export interface ToolSourceOptions {
  readonly name: string
  readonly origin: Source['origin']
  /** Shown by `list_servers`. */
  readonly description: string
  readonly tools: readonly Tool[]
  readonly resources?: readonly Entry[]
  /** The timeout for tools without their own timeout. */
  readonly timeoutMs: number
  readonly clock: Clock
}

export function toolSource({
  name,
  origin,
  description,
  tools,
  resources = [],
  timeoutMs,
  clock,
}: ToolSourceOptions): Source {
  const twice = tools.find((tool, index) => tools.findIndex((other) => other.name === tool.name) !== index)
  if (twice) throw new TypeError(`${name} has two tools named "${twice.name}".`)
  const since = clock.now()
  const entries = [...tools.map((tool) => toolEntry(name, tool, tool.timeoutMs ?? timeoutMs)), ...resources]

  return {
    name,
    origin,
    // Native tools have the highest priority, so that a server cannot take the name of one.
    priority: Number.MAX_SAFE_INTEGER,
    entries: () => entries,
    status: () => ({ health: 'healthy', reason: '', since, description, transport: 'in-process', breaker: 'closed' }),
    ready: async () => {},
    refresh: async () => {},
    onChange: () => ({ [Symbol.dispose]() {} }),
    async [Symbol.asyncDispose]() {},
  }
}

function toolEntry(server: string, tool: Tool, timeoutMs: number): Entry {
  const { name, aliases, definition, descriptionFor, readOnly, idempotent, carries, counted, run } = tool
  const timeoutKey = tool.timeoutMs === undefined ? 'defaults.timeout' : tool.timeoutKey
  const traits = { readOnly, idempotent, timeoutMs, timeoutKey, carries, counted }
  const checksItself = tool.checkedBySchema ? undefined : true
  return { kind: 'tool', server, name, aliases, definition, descriptionFor, traits, checksItself, run }
}

/** Names of the built-in tools. A name is reserved even while its tool is not served. */
export const builtInNames = 'hash time fetch generate vision speech diffusion execute_code'.split(' ')

/** Checks the tools that a program registers; throws a TypeError for the first one that cannot be served. */
export function registeredTools(tools: readonly Tool[]): readonly Tool[] {
  const names = new Set<string>()
  for (const tool of tools) {
    if (typeof tool?.run !== 'function' || typeof tool.name !== 'string') {
      throw new TypeError('Each tool must be created with defineTool.')
    }
    const { name } = tool
    if (builtInNames.includes(name)) {
      throw new TypeError(`The name "${name}" is reserved for a built-in tool: choose another name.`)
    }
    if (names.has(name)) throw new TypeError(`Two tools are named "${name}": rename one of them.`)
    if (tool.isolated) throw new TypeError(`The tool "${name}" cannot be isolated: only plugin tools can.`)
    names.add(name)
  }
  return tools
}
