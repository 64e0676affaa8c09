import type { Caller } from '../core/call.ts'
import type { Chat } from '../core/chat.ts'
import { type ChatBuilder, chatBuilder } from './builder.ts'

/** What a chat needs of a gateway. */
export interface ChatGateway {
  /** None where no model is configured is a chat that says so when it is asked. */
  readonly chat: Chat
  /** The user of this machine, as an agent of their choice. */
  localAs(agent: string | undefined): Caller
}

/**
 * Asks models that use the tools of a gateway.
 *
 * @example
 * ```ts
 * await using gateway = await createGateway(await loadConfig({ env: process.env, cwd: process.cwd() }), { log })
 * const { text } = await createChat(gateway).withCodeExecution().ask('What is the 50th prime?')
 * ```
 */
export const createChat = (gateway: ChatGateway): ChatBuilder =>
  // The configuration may change while the gateway runs, and its chat with it.
  chatBuilder({
    chat: { models: () => gateway.chat.models(), answer: (request) => gateway.chat.answer(request) },
    callerAs: (agent) => gateway.localAs(agent),
  })
