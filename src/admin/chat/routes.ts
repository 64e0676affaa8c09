import * as z from 'zod'
import * as calls from '../calls/schema.ts'
import { answered, type Route, userRoute } from '../router.ts'

/** Maximum length of an image's data URL: 1 MiB of bytes. */
const maxImage = 1_400_000
const maxImages = 8
const maxPatterns = 512

const image = z
  .string()
  .max(maxImage)
  .regex(
    /^data:image\/(?:png|jpeg|webp|gif);base64,[A-Za-z0-9+/]+={0,2}$/,
    'must be a data URL of a PNG, JPEG, WebP or GIF image',
  )

const part = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('text'), text: z.string() }),
  z.strictObject({ type: z.literal('image_url'), image_url: z.strictObject({ url: image }) }),
])

const message = z.discriminatedUnion('role', [
  z.strictObject({ role: z.literal('user'), content: z.union([z.string(), z.array(part).min(1)]) }),
  z.strictObject({ role: z.enum(['system', 'assistant']), content: z.string() }),
])

const messages = z
  .array(message)
  .min(1)
  .refine((all) => countImages(all) <= maxImages, `must contain at most ${maxImages} images`)

const countImages = (all: readonly z.output<typeof message>[]): number =>
  all
    .flatMap(({ content }): readonly z.output<typeof part>[] => (typeof content === 'string' ? [] : content))
    .filter(({ type }) => type === 'image_url').length

/** Chat with the help of tools. */
export const chatRoutes: readonly Route[] = [
  userRoute('GET', 'chat', 'The chat models', {
    answer: calls.chatView,
    run: (_, { chat }) => chat.view(),
  }),
  userRoute('POST', 'chat', 'Answers a conversation with the help of tools; streams events', {
    stream: true,
    body: z.strictObject({
      messages: messages.describe(
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
    }),
    async run({ user, caller, body, signal, response }, { chat, watch }) {
      watch(user, response)
      await chat.answer(body, { caller, signal, response })
      return answered
    },
  }),
]
