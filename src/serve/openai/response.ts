import type { ChatEnd, ChatEvent } from '../../core/chat.ts'
import { incompleteAnswer } from './chat.ts'

interface CompletionHeader {
  readonly id: string
  /** Creation time in seconds since the epoch. */
  readonly created: number
  readonly model: string
}

/**
 * Encodes an answer's events as chunks. Events that do not exist in the OpenAI API (stages, and tools that run in the
 * gateway) become chunks with an empty delta and the extra member `toolway`, which other clients ignore.
 */
export function createChunks(heading: CompletionHeader, includeUsage: boolean) {
  const common = { ...heading, object: 'chat.completion.chunk' }
  // If the client requested `usage`, the API requires it in every chunk: null in all but the last.
  const usage = includeUsage ? { usage: null } : {}
  const chunk = (delta: object, extra: object = {}, finish: string | null = null) =>
    chunkBytes({ ...common, choices: [{ index: 0, delta, logprobs: null, finish_reason: finish }], ...usage, ...extra })

  return {
    opening: () => chunk({ role: 'assistant', content: '' }),
    /** Encodes an event as one or more chunks. The end event is followed by `[DONE]`. */
    of(event: ChatEvent): readonly Buffer[] {
      switch (event.kind) {
        case 'text':
          return [chunk({ content: event.text })]
        case 'thinking':
          // This member is not part of the OpenAI API, but vLLM, DeepSeek and others use the name, and clients read it.
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
            chunk({}, { toolway: { kind, reason, notes } }, finishReasons[reason]),
            ...(includeUsage ? [chunkBytes({ ...common, choices: [], usage: completionUsage(event) })] : []),
            done,
          ]
        }
      }
    },
  }
}

const done = Buffer.from('[DONE]')

const chunkBytes = (value: unknown): Buffer => Buffer.from(JSON.stringify(value))

const finishReasons: Readonly<Record<ChatEnd['reason'], string>> = {
  stop: 'stop',
  length: 'length',
  calls: 'tool_calls',
  filtered: 'content_filter',
  // The OpenAI API has no finish reason for too many rounds. `length` also means that the answer is incomplete.
  steps: 'length',
}

const completionUsage = ({ usage: { promptTokens, completionTokens } }: ChatEnd) => ({
  prompt_tokens: promptTokens,
  completion_tokens: completionTokens,
  total_tokens: promptTokens + completionTokens,
})

/** Collects a whole answer. The tool calls that were made are listed in the extra member `toolway`. */
export async function collectCompletion(events: AsyncIterable<ChatEvent>, heading: CompletionHeader): Promise<object> {
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
    choices: [{ index: 0, message, logprobs: null, finish_reason: finishReasons[reason] }],
    usage: completionUsage(end),
    toolway: { reason, notes, calls: [...calls.values()] },
  }
}
