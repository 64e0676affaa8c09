import { type Caller, ownerKey } from '../core/call.ts'
import type { ChatMessage, FunctionCall } from '../core/chat.ts'
import type { TtlStore } from '../core/stores.ts'
import { jsonValue } from '../json/parse-json.ts'
import type { Seal } from '../lib/seal.ts'
import { callsOf, isCallId, newCallId } from './conversation.ts'

interface KeptRound {
  readonly messages: readonly ChatMessage[]
  /** The ids of each call: first the client's, then the model's. */
  readonly ids: readonly (readonly [string, string])[]
}

/** How long the state is kept. Clients that take longer are assumed to be gone. */
const handoverLifetimeMs = 3_600_000

/**
 * Remembers calls that the client never saw. A client that runs its own tools returns with their results, but its
 * conversation lacks the calls that Toolway made in the same or earlier rounds. The seal encrypts the state, because
 * others may be able to read the store. If the state has expired, the conversation is still valid, but the model may
 * have to repeat a call.
 */
export class ClientToolState {
  readonly #ttlStore: TtlStore
  readonly #seal: Seal

  constructor(ttlStore: TtlStore, seal: Seal) {
    this.#ttlStore = ttlStore
    this.#seal = seal
  }

  /** Saves our messages, which end with the calls for the client, and returns these calls under new ids. */
  async keep(caller: Caller, own: readonly ChatMessage[], calls: readonly FunctionCall[]) {
    const handed = calls.map(({ extra_content: _unused, ...call }) => ({ ...call, id: newCallId() }))
    const [first] = handed
    if (!first) return handed
    const ids = handed.map(({ id }, index) => [id, calls[index]?.id ?? id] as const)
    const text = JSON.stringify({ messages: own, ids } satisfies KeptRound)
    await this.#ttlStore.set(
      handoverKey(first.id),
      this.#seal.close(text, handoverBinding(caller, first.id)),
      handoverLifetimeMs,
    )
    return handed
  }

  /** Restores saved messages in the client's conversation and gives every call a result. */
  async restore(caller: Caller, messages: readonly ChatMessage[]): Promise<readonly ChatMessage[]> {
    const known = await Promise.all(messages.map((message) => this.#find(caller, message)))
    const ids = new Map(known.flatMap((kept) => kept?.ids ?? []))
    const whole = messages.flatMap((message, index): readonly ChatMessage[] => {
      const kept = known[index]
      if (message.role !== 'tool') return kept ? withClientCalls(kept, message) : [message]
      return [{ ...message, tool_call_id: ids.get(message.tool_call_id) ?? message.tool_call_id }]
    })
    return withAllResults(whole)
  }

  async #find(caller: Caller, message: ChatMessage): Promise<KeptRound | undefined> {
    // The state is stored under the id of the first call, but clients may reorder the calls, so try each id.
    for (const { id } of callsOf(message)) {
      const sealed = isCallId(id) ? await this.#ttlStore.get(handoverKey(id), handoverLifetimeMs) : undefined
      const text = sealed === undefined ? undefined : this.#seal.open(sealed, handoverBinding(caller, id))
      if (text !== undefined) return jsonValue(text) as KeptRound
    }
    return undefined
  }
}

/** The saved messages with the client's calls as the client sent them: its user may have edited them before they ran. */
function withClientCalls({ messages, ids }: KeptRound, sent: ChatMessage): readonly ChatMessage[] {
  const own = new Map(ids)
  const edited = new Map(callsOf(sent).map((call) => [own.get(call.id), call.function]))
  const calls = messages.findLast((message) => callsOf(message).length > 0)
  return messages.map((message) => {
    if (message !== calls || message.role !== 'assistant') return message
    const changed = callsOf(message).map((call) => ({ ...call, function: edited.get(call.id) ?? call.function }))
    return { ...message, tool_calls: changed }
  })
}

const handoverKey = (id: string): string => `handover:${id}`

/** Binds the state to its caller, so that knowing a call's id is not enough to read the state. */
const handoverBinding = (caller: Caller, id: string): string => JSON.stringify(['handover', ownerKey(caller), id])

/** Adds a result for every unanswered call, because model servers refuse conversations with unanswered calls. */
function withAllResults(messages: readonly ChatMessage[]): readonly ChatMessage[] {
  const results = new Set(messages.flatMap((message) => (message.role === 'tool' ? [message.tool_call_id] : [])))
  return messages.flatMap((message) => [
    message,
    ...callsOf(message)
      .filter(({ id }) => !results.has(id))
      .map(({ id }): ChatMessage => ({ role: 'tool', tool_call_id: id, content: 'Error: The client sent no result.' })),
  ])
}
