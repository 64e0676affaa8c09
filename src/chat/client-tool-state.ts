import type { Caller } from '../core/call.ts'
import type { ChatMessage, FunctionCall } from '../core/chat.ts'
import type { TtlStore } from '../core/stores.ts'
import type { Seal } from '../lib/seal.ts'
import { callsOf, isCallId, newCallId } from './conversation.ts'

/**
 * What clients do not know of their conversations. A client that is handed calls of its own tools comes back with their
 * results, but never saw the calls that were made here before that or beside it: they are kept until then.
 */
export interface ClientToolState {
  /**
   * Keeps the messages of our own that end in an answer with the calls to hand over, and gives these calls ids that
   * they will be known by.
   */
  keep(caller: Caller, own: readonly ChatMessage[], calls: readonly FunctionCall[]): Promise<readonly FunctionCall[]>
  /** The conversation of a client with what was kept put back where it belongs, and no call without a result. */
  restore(caller: Caller, messages: readonly ChatMessage[]): Promise<readonly ChatMessage[]>
}

interface Kept {
  readonly messages: readonly ChatMessage[]
  /** The ids that clients know, and those that the model knows. */
  readonly ids: readonly (readonly [string, string])[]
}

export interface ClientToolStateOptions {
  readonly ttlStore: TtlStore
  /** Conversations are not for everybody who can read where they are kept. */
  readonly seal: Seal
}

/** A client that takes longer has most likely gone. */
const lifetimeMs = 3_600_000

/** Where what was kept is gone, the conversation still holds, and the model may have to call a tool again. */
export function createClientToolState({ ttlStore, seal }: ClientToolStateOptions): ClientToolState {
  const find = async (caller: Caller, message: ChatMessage): Promise<Kept | undefined> => {
    // A client may have put its calls in another order; what is kept stands under the first of them.
    for (const { id } of callsOf(message)) {
      const sealed = isCallId(id) ? await ttlStore.get(keyOf(id), lifetimeMs) : undefined
      const text = sealed === undefined ? undefined : seal.open(sealed, bindingOf(caller, id))
      if (text !== undefined) return JSON.parse(text) as Kept
    }
    return undefined
  }

  return {
    async keep(caller, own, calls) {
      const handed = calls.map((call) => ({ ...call, id: newCallId() }))
      const [first] = handed
      if (!first) return handed
      const ids = handed.map(({ id }, index) => [id, calls[index]?.id ?? id] as const)
      const text = JSON.stringify({ messages: own, ids } satisfies Kept)
      await ttlStore.set(keyOf(first.id), seal.close(text, bindingOf(caller, first.id)), lifetimeMs)
      return handed
    },
    async restore(caller, messages) {
      const known = await Promise.all(messages.map((message) => find(caller, message)))
      const ids = new Map(known.flatMap((kept) => kept?.ids ?? []))
      const whole = messages.flatMap((message, index): readonly ChatMessage[] => {
        if (message.role !== 'tool') return known[index]?.messages ?? [message]
        return [{ ...message, tool_call_id: ids.get(message.tool_call_id) ?? message.tool_call_id }]
      })
      return answered(whole)
    },
  }
}

const keyOf = (id: string): string => `handover:${id}`

/** Whoever has the id of a handed call must still be the one that it was handed to. */
const bindingOf = ({ principal, agent }: Caller, id: string): string =>
  JSON.stringify(['handover', principal, agent, id])

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
