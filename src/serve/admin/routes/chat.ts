import * as z from 'zod'
import { answered, guarded, type Route } from '../route.ts'
import { chatView } from '../schema/chat.ts'

const message = z.strictObject({ role: z.enum(['system', 'user', 'assistant']), content: z.string() })

export const chatRoutes: readonly Route[] = [
  guarded({
    method: 'GET',
    path: 'chat',
    summary: 'The models that one can talk to',
    access: 'guest',
    answer: chatView,
    run: (_, { chat }) => chat.view(),
  }),
  guarded({
    method: 'POST',
    path: 'chat',
    summary: 'Answers a conversation with the help of the tools, as a stream of events',
    access: 'guest',
    stream: true,
    body: z.strictObject({
      messages: z.array(message).min(1).describe('What was said so far, and what is asked now.'),
      model: z.string().min(1).optional().describe('One of the models; the usual one otherwise.'),
      mode: z.enum(['staged', 'agent']).optional().describe('Instead of chat.mode.'),
      agent: z.string().optional().describe('The agent; the one of the credential otherwise.'),
    }),
    async run({ guest, caller, body, signal, response }, { chat, watch }) {
      watch(guest, response)
      await chat.answer(body, { caller, signal, response })
      return answered
    },
  }),
]
