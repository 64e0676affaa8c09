import type { ChatEnd, ChatEvent } from '../../core/chat.ts'
import { incompleteAnswer } from './chat.ts'

/** What all that is told of one answer has in common. */
export interface CompletionHeader {
  readonly id: string
  /** In seconds since the epoch. */
  readonly created: number
  readonly model: string
}

/** Writes an answer piece by piece, as OpenAI does. */
export interface Chunks {
  /** Before anything has happened. */
  opening(): Buffer
  /** An event, as one chunk or several; the last of an answer is followed by `[DONE]`. */
  of(event: ChatEvent): readonly Buffer[]
}

/**
 * What OpenAI has no words for (stages, tools that run here) comes as chunks without any news in `choices` and with a
 * member of our own, `toolway`: clients that do not know it read past it.
 */
export function createChunks(heading: CompletionHeader, includeUsage: boolean): Chunks {
  const common = { ...heading, object: 'chat.completion.chunk' }
  // By its contract a client that asked for usage finds it in every chunk, and empty in all but the last.
  const usage = includeUsage ? { usage: null } : {}
  const chunk = (delta: object, extra: object = {}, finish: string | null = null) =>
    bytesOf({ ...common, choices: [{ index: 0, delta, logprobs: null, finish_reason: finish }], ...usage, ...extra })

  return {
    opening: () => chunk({ role: 'assistant', content: '' }),
    of(event) {
      switch (event.kind) {
        case 'text':
          return [chunk({ content: event.text })]
        case 'thinking':
          // Not OpenAI's, but what vLLM, DeepSeek and others call it, and what clients look for.
          return [chunk({ reasoning_content: event.text })]
        case 'stage':
        case 'call':
        case 'result':
          return [chunk({}, { toolway: event })]
        case 'end': {
          const { kind, reason, handed, notes } = event
          const calls = handed.map((call, index) => ({ index, ...call }))
          return [
            ...(calls.length > 0 ? [chunk({ tool_calls: calls })] : []),
            chunk({}, { toolway: { kind, reason, notes } }, finishReason(event)),
            ...(includeUsage ? [bytesOf({ ...common, choices: [], usage: usageOf(event) })] : []),
            done,
          ]
        }
      }
    },
  }
}

const done = Buffer.from('[DONE]')

const bytesOf = (value: unknown): Buffer => Buffer.from(JSON.stringify(value))

const reasons: Readonly<Record<ChatEnd['reason'], string>> = {
  stop: 'stop',
  length: 'length',
  calls: 'tool_calls',
  filtered: 'content_filter',
  // OpenAI knows no limit of rounds: to a client it means the same, that the answer is not whole.
  steps: 'length',
}

/** Why an answer ended, in the words of OpenAI. */
const finishReason = ({ reason }: ChatEnd): string => reasons[reason]

const usageOf = ({ usage: { promptTokens, completionTokens } }: ChatEnd) => ({
  prompt_tokens: promptTokens,
  completion_tokens: completionTokens,
  total_tokens: promptTokens + completionTokens,
})

/** Waits for an answer and gives it whole, with what happened on the way in a member of our own. */
export async function completionOf(events: AsyncIterable<ChatEvent>, heading: CompletionHeader): Promise<object> {
  let content = ''
  let reasoning = ''
  let end: ChatEnd | undefined
  const calls = new Map<string, object>()
  for await (const event of events) {
    if (event.kind === 'text') content += event.text
    else if (event.kind === 'thinking') reasoning += event.text
    else if (event.kind === 'end') end = event
    else if (event.kind === 'call') {
      const { kind, ...call } = event
      calls.set(event.call, call)
    } else if (event.kind === 'result') {
      const { kind, text, ...result } = event
      calls.set(event.call, { ...calls.get(event.call), ...result })
    }
  }
  if (!end) throw incompleteAnswer()
  const { handed, reason, notes, model } = end
  const message = {
    role: 'assistant',
    content: content === '' && handed.length > 0 ? null : content,
    refusal: null,
    ...(reasoning !== '' && { reasoning_content: reasoning }),
    ...(handed.length > 0 && { tool_calls: handed }),
  }
  return {
    ...heading,
    model,
    object: 'chat.completion',
    choices: [{ index: 0, message, logprobs: null, finish_reason: finishReason(end) }],
    usage: usageOf(end),
    toolway: { reason, notes, calls: [...calls.values()] },
  }
}
