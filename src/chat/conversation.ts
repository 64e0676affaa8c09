import { randomUUID } from 'node:crypto'
import type { ChatMessage, ContentPart, FunctionCall } from '../core/chat.ts'

type Content = string | readonly ContentPart[]

/** The text of a message; of what is no text, that it is there. */
export function textOf(content: Content): string {
  if (typeof content === 'string') return content
  return content
    .map((part) => (part.type === 'text' ? part.text : part.type === 'image_url' ? '[image]' : '[audio]'))
    .join('\n')
}

/**
 * A conversation with our instruction at its head. What the client tells the system follows in the same message: many
 * templates know one system message, and that first.
 */
export function withSystem(instruction: string, messages: readonly ChatMessage[]): ChatMessage[] {
  const system = [instruction, ...messages.map((message) => (message.role === 'system' ? textOf(message.content) : ''))]
  const content = system.filter((text) => text.trim() !== '').join('\n\n')
  const rest = messages.filter(({ role }) => role !== 'system')
  return content === '' ? rest : [{ role: 'system', content }, ...rest]
}

/** Where the last message of the user stands; -1 where there is none. */
export const lastQuestion = (messages: readonly ChatMessage[]): number =>
  messages.findLastIndex(({ role }) => role === 'user')

/** The texts of the user, the latest first. */
export const questions = (messages: readonly ChatMessage[]): readonly string[] =>
  messages.flatMap((message) => (message.role === 'user' ? [textOf(message.content)] : [])).reverse()

/** The client has run its own tools and has come back with what they said. */
export const isResumed = (messages: readonly ChatMessage[]): boolean => messages.at(-1)?.role === 'tool'

/** What tools have said since the user last spoke, in the order of the calls. */
export function resultsIn(
  messages: readonly ChatMessage[],
): readonly { readonly name: string; readonly text: string }[] {
  const latest = messages.slice(lastQuestion(messages) + 1)
  const names = new Map(latest.flatMap(callsOf).map(({ id, function: called }) => [id, called.name]))
  return latest.flatMap((message) =>
    message.role === 'tool' ? [{ name: names.get(message.tool_call_id) ?? 'a tool', text: message.content }] : [],
  )
}

/** The calls that a message makes. */
export const callsOf = (message: ChatMessage): readonly FunctionCall[] =>
  message.role === 'assistant' ? (message.tool_calls ?? []) : []

/** An id that no call has had before. */
export const newCallId = (): string => `call_${randomUUID().replaceAll('-', '')}`

/** Whether an id may be one of those. */
export const isCallId = (id: string): boolean => /^call_[0-9a-f]{32}$/.test(id)

/** The calls with ids that the conversation does not have yet: some servers count from zero in every answer. */
export function withUniqueIds(
  calls: readonly FunctionCall[],
  messages: readonly ChatMessage[],
): readonly FunctionCall[] {
  const used = new Set(messages.flatMap(callsOf).map(({ id }) => id))
  return calls.map((call) => (used.has(call.id) ? { ...call, id: newCallId() } : call))
}

/** More of a useless answer is of no use. */
const maxQuoted = 4_000

/** What an answer that cannot be used is followed by: the answer itself, and why it has to be given again. */
export const correctionMessages = (answer: string, problem: string): readonly ChatMessage[] => [
  // Some templates want the two sides to take turns, and none takes an empty message.
  { role: 'assistant', content: answer.trim() === '' ? '(nothing)' : answer.slice(0, maxQuoted) },
  { role: 'user', content: `Your answer cannot be used. ${problem} Answer again, in the form that was asked for.` },
]
