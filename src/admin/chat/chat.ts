import { randomUUID } from 'node:crypto'
import type { ServerResponse } from 'node:http'
import * as z from 'zod'
import type { Access } from '../../core/access.ts'
import type { Caller } from '../../core/call.ts'
import type { Chat, ChatEvent } from '../../core/chat.ts'
import type { Clock } from '../../core/clock.ts'
import { ToolwayError } from '../../core/errors.ts'
import type { Budgets } from '../../core/limits/budget.ts'
import type { Log } from '../../core/log.ts'
import { actingAs } from '../../serve/auth/identity.ts'
import { nonInteractivePeer } from '../../serve/calls/operations.ts'
import { selectModel, streamAnswer } from '../../serve/openai/chat.ts'
import { chatView } from '../calls/schema.ts'
import type { ChatStreamEvent, ChatView } from '../contract.ts'
import { failureEvent, jsonBytes, type Route, responseSent, userRoute } from '../router.ts'

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
      { agent, messages, mode, model: asked, only }: z.output<typeof chatInput>,
      { caller, signal, response }: { caller: Caller; signal: AbortSignal; response: ServerResponse },
    ): Promise<void> {
      const chosen = selectModel(chat?.(), asked)
      const { model } = chosen
      if (countImages(messages) > 0 && !chosen.chat.visionModels().includes(model)) throw noVision(model)
      budgets.chat_answers.claim(caller.principal)
      response.once('close', () => budgets.chat_answers.give(caller.principal))
      const id = `chat-${randomUUID().slice(19)}`
      const events = chosen.chat.answer({
        ...{ id, model, mode, messages, only, signal, peer: nonInteractivePeer, stream: true },
        caller: actingAs(access, caller, agent),
      })
      await streamAnswer(events, {
        response,
        opening: [chatEventBytes({ kind: 'start', id, model })],
        encode: (event) => [chatEventBytes(event)],
        failure: (thrown) => chatEventBytes(failureEvent(thrown, log)),
        clock,
      })
    },
  }
}

const noVision = (model: string) =>
  new ToolwayError(
    'INVALID_ARGUMENTS',
    `The model ${model} is not configured to accept images. Remove them, choose another model, or set models.${model}.vision to true.`,
  )

/** Encodes an event. Omits client-side tool calls: the dashboard offers no tools of its own. */
const chatEventBytes = (event: ChatStreamEvent | ChatEvent): Buffer => jsonBytes({ ...event, handed: undefined })

/** Maximum length of an image's data URL: 1 MiB of bytes. */
const maxImage = 1_400_000
const maxChatImages = 8
const maxPatterns = 512

const chatImage = z
  .string()
  .max(maxImage)
  .regex(
    /^data:image\/(?:png|jpeg|webp|gif);base64,[A-Za-z0-9+/]+={0,2}$/,
    'must be a data URL of a PNG, JPEG, WebP or GIF image',
  )

const chatContentPart = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('text'), text: z.string() }),
  z.strictObject({ type: z.literal('image_url'), image_url: z.strictObject({ url: chatImage }) }),
])

const chatMessage = z.discriminatedUnion('role', [
  z.strictObject({ role: z.literal('user'), content: z.union([z.string(), z.array(chatContentPart).min(1)]) }),
  z.strictObject({ role: z.enum(['system', 'assistant']), content: z.string() }),
])

const chatMessages = z
  .array(chatMessage)
  .min(1)
  .refine((all) => countImages(all) <= maxChatImages, `must contain at most ${maxChatImages} images`)

const countImages = (all: readonly z.output<typeof chatMessage>[]): number =>
  all
    .flatMap(({ content }): readonly z.output<typeof chatContentPart>[] => (typeof content === 'string' ? [] : content))
    .filter(({ type }) => type === 'image_url').length

const chatInput = z.strictObject({
  messages: chatMessages.describe(
    'The conversation, ending with the new message. Images need a model that accepts them.',
  ),
  model: z.string().min(1).optional().describe('The model. Default: the first one that GET chat returns.'),
  mode: z.enum(['staged', 'agent']).optional().describe('Overrides chat.mode.'),
  agent: z.string().optional().describe("The agent to act as. Default: the credential's agent."),
  only: z
    .array(z.string().min(1).max(200))
    .max(maxPatterns)
    .optional()
    .describe("Restricts the agent's tools to these (`server.tool`, `*` is a wildcard). Default: all of them."),
})

export const chatRoutes = (chat: DashboardChat): readonly Route[] => [
  userRoute('GET', 'chat', 'The chat models', {
    answer: chatView,
    run: () => chat.view(),
  }),
  userRoute('POST', 'chat', 'Answers a conversation with the help of tools; streams events', {
    stream: true,
    body: chatInput,
    async run({ user, caller, body, signal, response }, { watch }) {
      watch(user, response)
      await chat.answer(body, { caller, signal, response })
      return responseSent
    },
  }),
]
