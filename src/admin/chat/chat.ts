import { randomUUID } from 'node:crypto'
import type { ServerResponse } from 'node:http'
import type { Access } from '../../core/access.ts'
import type { Caller } from '../../core/call.ts'
import type { Chat, ChatEvent, ChatMessage, ChatRequest, ContentPart } from '../../core/chat.ts'
import type { Clock } from '../../core/clock.ts'
import { ToolwayError } from '../../core/errors.ts'
import type { Budgets } from '../../core/limits/budgets.ts'
import type { Log } from '../../core/log.ts'
import { actingAs } from '../../serve/auth/identity.ts'
import { nonInteractivePeer } from '../../serve/calls/operations.ts'
import { selectModel, streamAnswer } from '../../serve/openai/chat.ts'
import type { ChatStreamEvent, ChatView } from '../contract.ts'
import { failureEvent } from '../responses.ts'

interface ChatInput extends Pick<ChatRequest, 'messages' | 'model' | 'mode' | 'only'> {
  readonly agent?: string | undefined
}

export type DashboardChat = ReturnType<typeof createDashboardChat>

export function createDashboardChat(options: {
  readonly chat?: (() => Chat | undefined) | undefined
  readonly access: Pick<Access, 'agentOf' | 'rejected'>
  readonly budgets: Pick<Budgets, 'chat_answers'>
  readonly clock: Clock
  readonly log: Log
}) {
  const { chat, access, budgets, clock, log } = options
  return {
    view: (): ChatView => ({ models: chat?.()?.models() ?? [], vision: chat?.()?.visionModels() ?? [] }),
    /** Streams an answer. Rejects if there is no model. */
    async answer(
      { agent, messages, mode, model: asked, only }: ChatInput,
      { caller, signal, response }: { caller: Caller; signal: AbortSignal; response: ServerResponse },
    ): Promise<void> {
      const chosen = selectModel(chat?.(), asked)
      const { model } = chosen
      if (messages.some(hasImage) && !chosen.chat.visionModels().includes(model)) throw noVision(model)
      budgets.chat_answers.claim(caller.principal)
      response.once('close', () => budgets.chat_answers.give(caller.principal))
      const id = `chat-${randomUUID().slice(19)}`
      const events = chosen.chat.answer({
        ...{ id, model, mode, messages, only, signal, peer: nonInteractivePeer, stream: true },
        caller: actingAs(access, caller, agent),
      })
      await streamAnswer(events, {
        response,
        opening: [bytesOf({ kind: 'start', id, model })],
        encode: (event) => [bytesOf(streamEvent(event))],
        failure: (thrown) => bytesOf(failureEvent(thrown, log)),
        clock,
      })
    },
  }
}

const hasImage = ({ content }: ChatMessage): boolean =>
  Array.isArray(content) && content.some(({ type }: ContentPart) => type === 'image_url')

const noVision = (model: string) =>
  new ToolwayError(
    'INVALID_ARGUMENTS',
    `The model ${model} is not configured to accept images. Remove them, choose another model, or set models.${model}.vision to true.`,
  )

/** Converts an event for the dashboard. Omits client-side tool calls: the dashboard offers no tools of its own. */
function streamEvent(event: ChatEvent): ChatStreamEvent {
  if (event.kind !== 'end') return event
  const { handed, ...rest } = event
  return rest
}

const bytesOf = (event: ChatStreamEvent): Buffer => Buffer.from(JSON.stringify(event))
