import type { ChatMessage } from '../../core/chat.ts'

/** More of a useless answer is of no use. */
const maxQuoted = 4_000

/** What an answer that cannot be used is followed by: the answer itself, and why it has to be given again. */
export const corrected = (answer: string, problem: string): readonly ChatMessage[] => [
  // Some templates want the two sides to take turns, and none takes an empty message.
  { role: 'assistant', content: answer.trim() === '' ? '(nothing)' : answer.slice(0, maxQuoted) },
  { role: 'user', content: `Your answer cannot be used. ${problem} Answer again, in the form that was asked for.` },
]
