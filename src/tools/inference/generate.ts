import * as z from 'zod'
import type { ChatMessage } from '../../core/chat.ts'
import { invalidArguments, ToolwayError } from '../../core/errors.ts'
import { resultOf } from '../../core/result.ts'
import { jsonValue } from '../../lib/parse-json.ts'
import { defineTool, type Tool } from '../define-tool.ts'
import {
  type Choice,
  choiceFor,
  completionOf,
  type InferenceOptions,
  inferenceTraits,
  type LanguageModel,
  modelArgument,
  type ParsedAnswer,
} from './models.ts'

const maxLength = 1_000_000

const message = z.strictObject({
  role: z.enum(['system', 'user', 'assistant']),
  content: z.string().max(maxLength),
})

/** Generates text with a language model, as JSON if a schema is given (F17). Undefined if no model is configured. */
export function generate(options: InferenceOptions): Tool | undefined {
  const choice = choiceFor('generate', options)
  if (choice.names.length === 0) return undefined
  return defineTool({
    name: 'generate',
    title: 'Generate text',
    description:
      'Generates text with a language model: an answer to a prompt, or the next message in a conversation. With a schema, ' +
      'the answer is JSON that matches it.',
    input: z.object({
      prompt: z.string().max(maxLength).optional().describe('The prompt. Pass either this or messages.'),
      messages: z.array(message).min(1).max(200).optional().describe('A conversation to continue.'),
      system: z.string().max(maxLength).optional().describe('The system prompt.'),
      max_tokens: z.int().min(1).max(1_000_000).optional(),
      temperature: z.number().min(0).max(2).optional(),
      schema: z.record(z.string(), z.unknown()).optional().describe('A JSON Schema for the answer.'),
      model: modelArgument(choice),
    }),
    output: z.object({
      model: z.string(),
      text: z.string(),
      value: z.unknown().optional().describe('The parsed answer, if a schema was given.'),
      finish_reason: z.string(),
      usage: z.object({ prompt_tokens: z.number(), completion_tokens: z.number() }).optional(),
    }),
    ...inferenceTraits(options),
    async run({ prompt, messages, system, schema, model: name, max_tokens, temperature }, { signal }) {
      const model = languageModel(options, choice, name)
      const { restore, ...completion } = await completionOf(model, {
        messages: messagesOf(prompt, messages, system),
        signal,
        maxTokens: max_tokens,
        temperature,
        constraint: schema && { name: 'answer', schema },
      })
      const { read = plainJson } = options
      const value = schema && fitting(await read(completion.text, schema, restore))
      return resultOf({
        content: [{ type: 'text', text: completion.text }],
        structuredContent: { model: model.name, ...completion, value },
      })
    },
  })
}

export function languageModel({ models }: InferenceOptions, choice: Choice, asked: string | undefined): LanguageModel {
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

function fitting(found: ParsedAnswer): unknown {
  if ('value' in found) return found.value
  const sentence = `The model's answer does not match the schema: it ${found.problem}. Try again, or use a simpler schema.`
  throw new ToolwayError('SERVER_UNAVAILABLE', sentence)
}

async function plainJson(text: string, _: unknown, restore: (value: unknown) => unknown): Promise<ParsedAnswer> {
  const [, fenced] = /^```(?:json)?\n([\s\S]*)```$/.exec(text.trim()) ?? []
  try {
    return { value: restore(jsonValue(fenced ?? text)) }
  } catch {
    return { problem: 'is not JSON' }
  }
}
