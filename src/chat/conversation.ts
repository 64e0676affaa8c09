import { randomUUID } from 'node:crypto'
import type { ChatMessage, ContentPart, FunctionCall } from '../core/chat.ts'

type MessageContent = string | readonly ContentPart[]

/** The text of a message, with placeholders for images and audio. */
export function messageText(content: MessageContent): string {
  if (typeof content === 'string') return content
  return content
    .map((part) => (part.type === 'text' ? part.text : part.type === 'image_url' ? '[image]' : '[audio]'))
    .join('\n')
}

/** Merges our instruction and the client's system messages into one, because many chat templates support only one. */
export function withSystem(instruction: string, messages: readonly ChatMessage[]): ChatMessage[] {
  const system = [
    instruction,
    ...messages.map((message) => (message.role === 'system' ? messageText(message.content) : '')),
  ]
  const content = system.filter((text) => text.trim() !== '').join('\n\n')
  const rest = messages.filter(({ role }) => role !== 'system')
  return content === '' ? rest : [{ role: 'system', content }, ...rest]
}

/** Index of the last user message; -1 if there is none. */
export const lastQuestion = (messages: readonly ChatMessage[]): number =>
  messages.findLastIndex(({ role }) => role === 'user')

/** The messages with this question at the end instead of the last one; unchanged if it is empty. */
export const withQuestion = (messages: readonly ChatMessage[], content: string): readonly ChatMessage[] =>
  content === '' ? messages : [...messages.toSpliced(Math.max(0, lastQuestion(messages)), 1), { role: 'user', content }]

/** The user's messages, latest first. */
export const questions = (messages: readonly ChatMessage[]): readonly string[] =>
  messages.flatMap((message) => (message.role === 'user' ? [messageText(message.content)] : [])).reverse()

/** Whether the client has sent results from its own tools. */
export const isResumed = (messages: readonly ChatMessage[]): boolean => messages.at(-1)?.role === 'tool'

/** Tool results since the last user message, in call order. */
export function resultsIn(messages: readonly ChatMessage[]) {
  const latest = messages.slice(lastQuestion(messages) + 1)
  const names = new Map(latest.flatMap(callsOf).map(({ id, function: called }) => [id, called.name]))
  return latest.flatMap((message) =>
    message.role === 'tool' ? [{ name: names.get(message.tool_call_id) ?? 'a tool', text: message.content }] : [],
  )
}

export const callsOf = (message: ChatMessage): readonly FunctionCall[] =>
  message.role === 'assistant' ? (message.tool_calls ?? []) : []

export const newCallId = (): string => `call_${randomUUID().replaceAll('-', '')}`

/** Whether an id has the format that `newCallId` produces. */
export const isCallId = (id: string): boolean => /^call_[0-9a-f]{32}$/.test(id)

/** Replaces ids that the conversation already uses: some servers restart their ids at zero in each answer. */
export function withUniqueIds<C extends FunctionCall>(calls: readonly C[], messages: readonly ChatMessage[]) {
  const used = new Set(messages.flatMap(callsOf).map(({ id }) => id))
  return calls.map((call) => (used.has(call.id) ? { ...call, id: newCallId() } : call))
}

/** The first `maxBytes` bytes of the text, followed by a note if anything was omitted. */
export function truncateText(text: string, maxBytes: number): string {
  // A UTF-16 unit takes at most three bytes, so this text certainly fits.
  if (text.length * 3 <= maxBytes) return text
  const bytes = Buffer.from(text)
  if (bytes.length <= maxBytes) return text
  let end = maxBytes
  // Do not cut inside a character.
  while (end > 0 && ((bytes[end] as number) & 0xc0) === 0x80) end--
  return `${bytes.toString('utf8', 0, end)}\n[Truncated: the first ${end} of ${bytes.length} bytes.]`
}

/** Shortens text to a single line for display. */
export function displayLine(text: string, maxLength = 160): string {
  const line = text
    .slice(0, maxLength * 4)
    .replace(/[\s\p{Cc}]+/gu, ' ')
    .trim()
  if (line.length <= maxLength && text.length <= maxLength * 4) return line
  return `${line.slice(0, maxLength - 1).replace(/[\ud800-\udbff]$/, '')}…`
}

/** Size limits for tool results, in bytes, tried in this order until the conversation fits; 0 omits the text. */
const remainders = [1024, 0]

/** Shortens tool results, oldest first. Removes no messages, because model servers refuse calls without results. */
export function truncateConversation(messages: readonly ChatMessage[], maxBytes: number): readonly ChatMessage[] {
  let excess = messages.reduce((sum, message) => sum + messageBytes(message), 0) - maxBytes
  if (excess <= 0) return messages
  const shortened = [...messages]
  for (const remainder of remainders) {
    for (const [index, message] of shortened.entries()) {
      if (excess <= 0) return shortened
      if (message.role !== 'tool' || message.content.length <= remainder) continue
      const content =
        remainder === 0 ? '[Omitted: the conversation is too long.]' : truncateText(message.content, remainder)
      if (content.length >= message.content.length) continue
      excess -= Buffer.byteLength(message.content) - Buffer.byteLength(content)
      shortened[index] = { ...message, content }
    }
  }
  return shortened
}

function messageBytes(message: ChatMessage): number {
  const { role, content, ...callsAndReasoning } = message
  const others = role === 'assistant' ? JSON.stringify(callsAndReasoning) : ''
  return Buffer.byteLength(messageText(content ?? '')) + Buffer.byteLength(others)
}
