import type { Clock } from '../core/clock.ts'
import type { Definition, Entry } from '../core/entry.ts'
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
  const listeners = new Set<() => void>()
  let known: readonly Entry[] = []

  /** Entries keep their identity until their definition changes, so that what others prepared from them stays valid. */
  function current(): readonly Entry[] {
    const entries = tools.map((tool, index) => {
      const definition = tool.definition()
      const before = known[index]
      if (before && before.definition.description === definition.description) return before
      return entryOf(name, tool, definition, tool.timeoutMs ?? timeoutMs)
    })
    if (entries.some((entry, index) => entry !== known[index])) known = entries
    return known
  }

  return {
    name,
    origin,
    // Nothing outranks what is built in: a server cannot take the name of a native tool.
    priority: Number.MAX_SAFE_INTEGER,
    entries: current,
    status: () => ({ health: 'healthy', reason: '', since, description, transport: 'in-process', breaker: 'closed' }),
    ready: async () => {},
    async refresh() {
      const before = known
      if (current() !== before) for (const listener of listeners) listener()
    },
    onChange(listener) {
      listeners.add(listener)
      return { [Symbol.dispose]: () => void listeners.delete(listener) }
    },
    async [Symbol.asyncDispose]() {
      listeners.clear()
    },
  }
}

const entryOf = (server: string, tool: Tool, definition: Definition, timeoutMs: number): Entry => ({
  kind: 'tool',
  server,
  name: tool.name,
  definition,
  traits: {
    readOnly: tool.readOnly,
    idempotent: tool.idempotent,
    timeoutMs,
    ...(tool.carries && { carries: tool.carries }),
  },
  checksItself: true,
  run: tool.run,
})
