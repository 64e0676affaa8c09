import * as z from 'zod'
import { answered, type Route, userRoute } from '../router.ts'
import * as calls from '../schemas/calls.ts'

const message = z.strictObject({ role: z.enum(['system', 'user', 'assistant']), content: z.string() })

/** Chat with the help of tools. */
export const chatRoutes: readonly Route[] = [
  userRoute('GET', 'chat', 'The chat models', {
    answer: calls.chatView,
    run: (_, { chat }) => chat.view(),
  }),
  userRoute('POST', 'chat', 'Answers a conversation with the help of tools; streams events', {
    stream: true,
    body: z.strictObject({
      messages: z.array(message).min(1).describe('The conversation, ending with the new message.'),
      model: z.string().min(1).optional().describe('The model. Default: the first one that GET chat returns.'),
      mode: z.enum(['staged', 'agent']).optional().describe('Overrides chat.mode.'),
      agent: z.string().optional().describe("The agent to act as. Default: the credential's agent."),
    }),
    async run({ user, caller, body, signal, response }, { chat, watch }) {
      watch(user, response)
      await chat.answer(body, { caller, signal, response })
      return answered
    },
  }),
]
