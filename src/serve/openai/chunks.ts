import type { ChatEvent } from '../../core/chat.ts'
import { finishReason, usageOf } from './words.ts'

/** What all that is told of one answer has in common. */
export interface Heading {
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
export function createChunks(heading: Heading, includeUsage: boolean): Chunks {
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
