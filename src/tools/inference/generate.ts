import * as z from 'zod'
import { type ChatMessage, correctionMessages } from '../../core/chat.ts'
import { invalidArguments, ToolwayError } from '../../core/errors.ts'
import { resultOf } from '../../core/result.ts'
import { guardedGet } from '../../egress/guarded-get.ts'
import { Json } from '../../json/json.ts'
import { jsonValue } from '../../json/parse-json.ts'
import { defineTool, type Tool } from '../define-tool.ts'
import { sniffedType } from '../media-type.ts'
import {
  type AnswerParser,
  bytesFrom,
  completeText,
  type InferenceOptions,
  inferenceTraits,
  type LanguageModel,
  type ModelChoice,
  modelArgument,
} from './models.ts'

const maxTextLength = 1_000_000

const messageInput = z.strictObject({
  role: z.enum(['system', 'user', 'assistant']),
  content: z.string().max(maxTextLength),
})

const answerOutput = z.object({
  model: z.string(),
  text: z.string(),
  value: z.unknown().optional().describe('The parsed answer, if a schema was given.'),
  finish_reason: z.string(),
  usage: z.object({ prompt_tokens: z.number(), completion_tokens: z.number() }).optional(),
})

/** Generates text with a language model, as JSON if a schema is given (F17). */
export const generateTool = (options: InferenceOptions, choice: ModelChoice): Tool =>
  defineTool({
    name: 'generate',
    title: 'Generate text',
    description:
      'Generates text with a language model: an answer to a prompt, or the next message in a conversation. With a schema, ' +
      'the answer is JSON that matches it.',
    input: z.object({
      prompt: z.string().max(maxTextLength).optional().describe('The prompt. Pass either this or messages.'),
      messages: z.array(messageInput).min(1).max(200).optional().describe('A conversation to continue.'),
      system: z.string().max(maxTextLength).optional().describe('The system prompt.'),
      max_tokens: z.int().min(1).max(1_000_000).optional(),
      temperature: z.number().min(0).max(2).optional(),
      schema: z.record(z.string(), z.unknown()).optional().describe('A JSON Schema for the answer.'),
      model: modelArgument(choice),
    }),
    output: answerOutput,
    ...inferenceTraits(options),
    async run({ prompt, messages, system, schema, model: name, max_tokens, temperature }, { caller, signal }) {
      const model = languageModel(options, choice, name)
      const request = {
        messages: messagesOf(prompt, messages, system),
        owner: caller.principal,
        signal,
        maxTokens: max_tokens,
        temperature,
      }
      const answer = schema
        ? await matchingAnswer(model, request, schema, options)
        : withoutRestore(await completeText(model, request))
      return resultOf({
        content: [{ type: 'text', text: answer.text }],
        structuredContent: { model: model.name, ...answer },
      })
    },
  })

type Completion = Awaited<ReturnType<typeof completeText>>

const withoutRestore = ({ restore: _, ...completion }: Completion) => completion

/** Asks for JSON that matches the schema. If the answer does not match, quotes the problem and asks once more. */
async function matchingAnswer(
  model: LanguageModel,
  request: Parameters<LanguageModel['complete']>[0],
  schema: Readonly<Record<string, unknown>>,
  { parser = async () => plainJson }: InferenceOptions,
) {
  const answers = await parser(schema)
  if ('unfit' in answers) throw invalidArguments(`The schema cannot be used: ${answers.unfit}.`)
  const constraint = { name: 'answer', schema }
  const ask = async (messages: readonly ChatMessage[]) => {
    const completion = await completeText(model, { ...request, messages, constraint })
    const { text, restore, finish_reason } = completion
    return { completion, found: answers.read(text, restore, !['length', 'interrupted'].includes(finish_reason)) }
  }
  const first = await ask(request.messages)
  if ('value' in first.found) return answerOf(first.completion, first.found.value)
  const second = await ask([
    ...request.messages,
    ...correctionMessages(first.completion.text, `It ${first.found.problem}.`),
  ])
  if ('problem' in second.found) throw unusableAnswers(model.name, second.found.problem)
  const usage = sumUsage(first.completion.usage, second.completion.usage)
  return { ...answerOf(second.completion, second.found.value), usage }
}

/** The answer with JSON as its text: the value's, if the model's own text contains code fences or needs repairs. */
const answerOf = (completion: Completion, value: unknown) => ({
  ...withoutRestore(completion),
  text: Json.parseIfSame(completion.text, value) ? completion.text : JSON.stringify(value),
  value,
})

const sumUsage = (one: Completion['usage'], other: Completion['usage']): Completion['usage'] =>
  one && other
    ? {
        prompt_tokens: one.prompt_tokens + other.prompt_tokens,
        completion_tokens: one.completion_tokens + other.completion_tokens,
      }
    : (one ?? other)

function unusableAnswers(model: string, problem: string): ToolwayError {
  const sentence = `The model ${model} did not give a usable answer in two attempts: the last answer ${problem}.`
  const advice = 'Use a simpler schema, a larger max_tokens or another model.'
  return new ToolwayError('SERVER_UNAVAILABLE', `${sentence} ${advice}`, { requestOnly: true })
}

function languageModel({ models }: InferenceOptions, choice: ModelChoice, asked: string | undefined): LanguageModel {
  const name = choice.pick(asked)
  const model = models.get(name)
  if (model) return model
  throw new ToolwayError('SERVER_UNAVAILABLE', `The model ${name} is unavailable; choose another.`)
}

function messagesOf(prompt?: string, messages?: readonly ChatMessage[], system?: string): ChatMessage[] {
  if ((prompt === undefined) === (messages === undefined)) throw invalidArguments('Pass either "prompt" or "messages".')
  const instruction: ChatMessage[] = system === undefined ? [] : [{ role: 'system', content: system }]
  return [...instruction, ...(messages ?? [{ role: 'user', content: prompt as string } as const])]
}

const plainJson: AnswerParser = {
  read(text, restore) {
    const [, fenced] = /^```(?:json)?\n([\s\S]*)```$/.exec(text.trim()) ?? []
    try {
      return { value: restore(jsonValue(fenced ?? text)) }
    } catch {
      return { problem: 'is not JSON' }
    }
  },
}

const maxVisionImages = 8

const imageInput = z.strictObject({
  data: z.string().optional().describe('The image in base64.'),
  url: z.string().optional().describe('The https URL of the image, instead of data.'),
})

/** Answers questions about images (F17). */
export function visionTool(options: InferenceOptions, choice: ModelChoice): Tool {
  const { maxBytes } = options.config.native.inference
  return defineTool({
    name: 'vision',
    title: 'Look at images',
    description: 'Answers a question about one or more images: describe, read or compare them.',
    input: z.object({
      prompt: z.string().max(100_000).default('What is in this image?').describe('The question about the images.'),
      images: z.array(imageInput).min(1).max(maxVisionImages),
      max_tokens: z.int().min(1).max(1_000_000).optional(),
      model: modelArgument(choice),
    }),
    output: answerOutput.omit({ value: true }),
    ...inferenceTraits(options),
    async run({ prompt, images, max_tokens, model: asked }, { caller, signal }) {
      const model = languageModel(options, choice, asked)
      const seen = await Promise.all(images.map((given, index) => dataUrl(given, `images[${index}]`, signal)))
      const content = [
        { type: 'text' as const, text: prompt },
        ...seen.map((url) => ({ type: 'image_url' as const, image_url: { url } })),
      ]
      const messages = [{ role: 'user' as const, content }]
      const request = { messages, owner: caller.principal, signal, maxTokens: max_tokens }
      const completion = withoutRestore(await completeText(model, request))
      return resultOf({
        content: [{ type: 'text', text: completion.text }],
        structuredContent: { model: model.name, ...completion },
      })
    },
  })

  /** An image as a `data:` URL. Images are fetched here, from vetted addresses: the model server never gets the URL. */
  async function dataUrl(
    { data, url }: z.output<typeof imageInput>,
    field: string,
    signal: AbortSignal,
  ): Promise<string> {
    if ((data === undefined) === (url === undefined))
      throw invalidArguments(`"${field}" must have either "data" or "url".`)
    const { bytes, mimeType } =
      url === undefined
        ? bytesFrom(`${field}.data`, data as string, 'image', maxBytes)
        : await fetched(url, field, signal)
    return `data:${mimeType};base64,${bytes.toString('base64')}`
  }

  async function fetched(url: string, field: string, signal: AbortSignal) {
    const { bytes, cut, status } = await guardedGet(url, { vet: options.vet, signal, maxBytes, accept: 'image/*' })
    const mimeType = sniffedType(bytes)
    if (!cut && status < 300 && mimeType?.startsWith('image/')) return { bytes, mimeType }
    const why = cut ? 'is too large' : status < 300 ? 'is not an image' : `could not be fetched (HTTP ${status})`
    throw invalidArguments(`The content of "${field}.url" ${why}; use another image.`)
  }
}
