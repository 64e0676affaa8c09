import * as z from 'zod'
import type { ChatMessage, ContentPart } from '../../core/chat.ts'

const textPart = z.object({ type: z.literal('text'), text: z.string() })
const refusalPart = z.object({ type: z.literal('refusal'), refusal: z.string() })
const imagePart = z.object({ type: z.literal('image_url'), image_url: z.object({ url: z.string().min(1) }) })
const audioPart = z.object({
  type: z.literal('input_audio'),
  input_audio: z.object({ data: z.string(), format: z.string() }),
})

const oneOf = (...types: readonly string[]) => ({ error: `its "type" must be one of ${types.join(', ')}` })

const parts: z.ZodType<ContentPart[]> = z
  .array(z.discriminatedUnion('type', [textPart, imagePart, audioPart], oneOf('text', 'image_url', 'input_audio')))
  .min(1)

const texts = z
  .array(z.discriminatedUnion('type', [textPart, refusalPart], oneOf('text', 'refusal')))
  .transform((all) => all.map((part) => (part.type === 'text' ? part.text : part.refusal)).join(''))

const said = z.union([z.string(), parts])
const onlyText = z.union([z.string(), texts])

const functionCall = z.object({
  id: z.string().min(1),
  type: z.literal('function', { error: 'only function calls are supported' }),
  function: z.object({ name: z.string().min(1), arguments: z.string() }),
})

const system = z
  .object({ role: z.enum(['system', 'developer']), content: onlyText })
  .transform(({ content }): ChatMessage => ({ role: 'system', content }))

const user = z.object({ role: z.literal('user'), content: said })

const assistant = z
  .object({
    role: z.literal('assistant'),
    content: onlyText.nullish(),
    refusal: z.string().nullish(),
    tool_calls: z.array(functionCall).nullish(),
  })
  .transform(({ content, refusal, tool_calls }): ChatMessage => {
    const made = tool_calls && tool_calls.length > 0 ? { tool_calls } : {}
    return { role: 'assistant', content: content ?? refusal ?? null, ...made }
  })

const tool = z.object({ role: z.literal('tool'), tool_call_id: z.string().min(1), content: onlyText })

/** The messages in an OpenAI request. Unknown members, such as names and hints, are dropped. */
export const messages: z.ZodType<ChatMessage[]> = z
  .array(
    z.discriminatedUnion('role', [system, user, assistant, tool], {
      error: 'its "role" must be one of system, developer, user, assistant, tool',
    }),
  )
  .min(1)
  .superRefine((conversation, context) => {
    const [index, message] = unansweredIn(conversation) ?? []
    if (index !== undefined) context.addIssue({ code: 'custom', path: [index], message })
  })

/** Finds a call without a result, or a result without a call. Models respond unpredictably to such conversations. */
function unansweredIn(conversation: readonly ChatMessage[]): readonly [at: number, message: string] | undefined {
  const open = new Set<string>()
  for (const [index, message] of conversation.entries()) {
    if (message.role === 'tool') {
      if (open.delete(message.tool_call_id)) continue
      return [index, 'its "tool_call_id" does not match a call in the preceding assistant message']
    }
    if (open.size > 0) return [index, missing(open)]
    if (message.role === 'assistant') for (const { id } of message.tool_calls ?? []) open.add(id)
  }
  return open.size > 0 ? [conversation.length - 1, missing(open)] : undefined
}

const missing = (open: ReadonlySet<string>): string =>
  `each tool call must be followed by a "tool" message; missing: ${[...open].slice(0, 3).join(', ')}`
