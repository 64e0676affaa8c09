import type { ChatEnd } from '../../core/chat.ts'

const reasons: Readonly<Record<ChatEnd['reason'], string>> = {
  stop: 'stop',
  length: 'length',
  calls: 'tool_calls',
  filtered: 'content_filter',
  // OpenAI knows no limit of rounds: to a client it means the same, that the answer is not whole.
  steps: 'length',
}

/** Why an answer ended, in the words of OpenAI. */
export const finishReason = ({ reason }: ChatEnd): string => reasons[reason]

export const usageOf = ({ usage: { promptTokens, completionTokens } }: ChatEnd) => ({
  prompt_tokens: promptTokens,
  completion_tokens: completionTokens,
  total_tokens: promptTokens + completionTokens,
})
