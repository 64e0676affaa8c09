import type { Caller } from '../core/call.ts'
import type { ChatMessage, FunctionCall } from '../core/chat.ts'
import type { Clock } from '../core/clock.ts'
import { callsOf, newCallId } from './conversation.ts'

/**
 * What clients do not know of their conversations. A client that is handed calls of its own tools comes back with their
 * results, but never saw the calls that were made here before that or beside it: they are kept until then.
 */
export interface Handovers {
  /**
   * Keeps the messages of our own that end in an answer with the calls to hand over, and gives these calls ids that
   * they will be known by.
   */
  keep(caller: Caller, own: readonly ChatMessage[], calls: readonly FunctionCall[]): readonly FunctionCall[]
  /** The conversation of a client with what was kept put back where it belongs, and no call without a result. */
  restore(caller: Caller, messages: readonly ChatMessage[]): readonly ChatMessage[]
}

interface Kept {
  readonly owner: string
  readonly messages: readonly ChatMessage[]
  /** The ids that the model knows, by those that the client knows. */
  readonly ids: ReadonlyMap<string, string>
  readonly size: number
  readonly until: number
}

/** A client that takes longer has most likely gone. */
const lifetimeMs = 3_600_000
const mostBytes = 32 * 1024 * 1024

/** Kept in memory: where it is gone, the conversation still holds, and the model may have to call a tool again. */
export function createHandovers(clock: Clock): Handovers {
  const kept = new Map<string, Kept>()
  let total = 0

  const forget = (key: string): void => {
    total -= kept.get(key)?.size ?? 0
    kept.delete(key)
  }

  const makeRoom = (): void => {
    for (const [key, { until }] of kept) {
      if (until > clock.now() && total <= mostBytes) return
      forget(key)
    }
  }

  /** What is asked for is kept for longer: it belongs to a conversation that goes on. */
  const find = (caller: Caller, message: ChatMessage): Kept | undefined => {
    const id = callsOf(message).find((call) => kept.has(call.id))?.id
    const found = id === undefined ? undefined : kept.get(id)
    if (id === undefined || !found || found.owner !== ownerOf(caller) || found.until <= clock.now()) return undefined
    kept.delete(id)
    kept.set(id, { ...found, until: clock.now() + lifetimeMs })
    return found
  }

  return {
    keep(caller, own, calls) {
      const handed = calls.map((call) => ({ ...call, id: newCallId() }))
      const [first] = handed
      if (!first) return handed
      const ids = new Map(handed.map(({ id }, index) => [id, calls[index]?.id ?? id]))
      const size = JSON.stringify(own).length
      kept.set(first.id, { owner: ownerOf(caller), messages: own, ids, size, until: clock.now() + lifetimeMs })
      total += size
      makeRoom()
      return handed
    },
    restore(caller, messages) {
      const ids = new Map<string, string>()
      const whole = messages.flatMap((message): readonly ChatMessage[] => {
        if (message.role === 'tool') {
          return [{ ...message, tool_call_id: ids.get(message.tool_call_id) ?? message.tool_call_id }]
        }
        const known = find(caller, message)
        if (!known) return [message]
        for (const [theirs, ours] of known.ids) ids.set(theirs, ours)
        return known.messages
      })
      return answered(whole)
    },
  }
}

/** Whoever has the id of a handed call must still be the one that it was handed to. */
const ownerOf = ({ principal, agent }: Caller): string => JSON.stringify([principal, agent])

/** A call that nobody has answered makes a conversation that model servers refuse. */
function answered(messages: readonly ChatMessage[]): readonly ChatMessage[] {
  const results = new Set(messages.flatMap((message) => (message.role === 'tool' ? [message.tool_call_id] : [])))
  return messages.flatMap((message) => [
    message,
    ...callsOf(message)
      .filter(({ id }) => !results.has(id))
      .map(({ id }): ChatMessage => ({ role: 'tool', tool_call_id: id, content: 'Error: There is no result.' })),
  ])
}
