import { isDeepStrictEqual } from 'node:util'
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
  const listeners = new Set<() => void>()
  let entries = tools.map(entry)
  let looked = false

  return {
    name,
    origin,
    // Nothing outranks what is built in: a server cannot take the name of a native tool.
    priority: Number.MAX_SAFE_INTEGER,
    entries: () => entries,
    status: () => ({ health: 'healthy', reason: '', since, description, transport: 'in-process', breaker: 'closed' }),
    async ready() {
      if (looked) return
      looked = true
      for (const [index, tool] of tools.entries()) tool.later?.().then((known) => replace(index, known), ignored)
    },
    refresh: async () => {},
    onChange(listener) {
      listeners.add(listener)
      return { [Symbol.dispose]: () => void listeners.delete(listener) }
    },
    async [Symbol.asyncDispose]() {},
  }

  function entry(tool: Tool): Entry {
    return entryOf(name, tool, tool.timeoutMs ?? timeoutMs)
  }

  function replace(index: number, known: Tool): void {
    // Nobody is told of what is as it was.
    if (isDeepStrictEqual(entries[index]?.definition, known.definition)) return
    entries = entries.with(index, entry(known))
    for (const listener of listeners) listener()
  }
}

/** What is not known better stays as it is. */
const ignored = () => {}

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
    ...(tool.carries && { carries: tool.carries }),
  },
  checksItself: true,
  run: tool.run,
})
