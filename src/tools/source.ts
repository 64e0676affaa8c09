import type { Clock } from '../core/clock.ts'
import type { Entry } from '../core/entry.ts'
import type { Source } from '../core/source.ts'
import type { Tool } from './define.ts'

export interface ToolSourceOptions {
  readonly name: string
  readonly origin: Source['origin']
  /** Shown by `list_servers`. */
  readonly description: string
  readonly tools: readonly Tool[]
  /** For tools that have no timeout of their own. */
  readonly timeoutMs: number
  readonly clock: Clock
}

/** Serves tools that run inside this process, as a source like any other. */
export function toolSource({ name, origin, description, tools, timeoutMs, clock }: ToolSourceOptions): Source {
  const twice = tools.find((tool, index) => tools.findIndex((other) => other.name === tool.name) !== index)
  if (twice) throw new TypeError(`${name} has two tools named "${twice.name}".`)
  const since = clock.now()
  const entries = tools.map((tool) => entryOf(name, tool, tool.timeoutMs ?? timeoutMs))

  return {
    name,
    origin,
    // Nothing outranks what is built in: a server cannot take the name of a native tool.
    priority: Number.MAX_SAFE_INTEGER,
    entries: () => entries,
    status: () => ({ health: 'healthy', reason: '', since, description, transport: 'in-process', breaker: 'closed' }),
    ready: async () => {},
    refresh: async () => {},
    onChange: () => ({ [Symbol.dispose]() {} }),
    async [Symbol.asyncDispose]() {},
  }
}

const entryOf = (server: string, tool: Tool, timeoutMs: number): Entry => ({
  kind: 'tool',
  server,
  name: tool.name,
  ...(tool.aliases && { aliases: tool.aliases }),
  definition: tool.definition,
  ...(tool.descriptionFor && { descriptionFor: tool.descriptionFor }),
  traits: {
    readOnly: tool.readOnly,
    idempotent: tool.idempotent,
    timeoutMs,
    timeoutKey: tool.timeoutMs === undefined ? 'defaults.timeout' : tool.timeoutKey,
    ...(tool.carries && { carries: tool.carries }),
  },
  ...(!tool.checkedBySchema && { checksItself: true }),
  run: tool.run,
})
