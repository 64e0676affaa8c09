import type { ChatMessage } from '../core/chat.ts'
import { textOf } from './conversation.ts'

/** The beginning of a text, at most so many bytes of it, with a note on what is missing. */
export function truncateText(text: string, most: number): string {
  // No character takes more than three bytes for each of its UTF-16 units.
  if (text.length * 3 <= most) return text
  const bytes = Buffer.from(text)
  if (bytes.length <= most) return text
  let end = most
  // A continuation byte at the cut belongs to a character that would lose it.
  while (end > 0 && ((bytes[end] as number) & 0xc0) === 0x80) end--
  return `${bytes.toString('utf8', 0, end)}\n[Cut off: these are the first ${end} of ${bytes.length} bytes.]`
}

const lineLength = 160

/** A text as one line for people to glance at. */
export function oneLine(text: string, most = lineLength): string {
  const line = text
    .slice(0, most * 4)
    .replace(/[\s\p{Cc}]+/gu, ' ')
    .trim()
  if (line.length <= most && text.length <= most * 4) return line
  return `${line.slice(0, most - 1).replace(/[\ud800-\udbff]$/, '')}…`
}

/** What is left of a result that had to be shortened: first this much, and nothing where that is not enough. */
const remainders = [1024, 0]

/**
 * A conversation of at most so many bytes, as far as shortening the results of tools can make it so; the oldest go
 * first. No message is left out: a call without its result is not a conversation that servers take.
 */
export function truncateConversation(messages: readonly ChatMessage[], most: number): readonly ChatMessage[] {
  let excess = messages.reduce((sum, message) => sum + sizeOf(message), 0) - most
  if (excess <= 0) return messages
  const shortened = [...messages]
  for (const remainder of remainders) {
    for (const [index, message] of shortened.entries()) {
      if (excess <= 0) return shortened
      if (message.role !== 'tool' || message.content.length <= remainder) continue
      const content =
        remainder === 0 ? '[Left out: the conversation is too long.]' : truncateText(message.content, remainder)
      if (content.length >= message.content.length) continue
      excess -= Buffer.byteLength(message.content) - Buffer.byteLength(content)
      shortened[index] = { ...message, content }
    }
  }
  return shortened
}

function sizeOf(message: ChatMessage): number {
  const calls = message.role === 'assistant' && message.tool_calls ? JSON.stringify(message.tool_calls) : ''
  return Buffer.byteLength(textOf(message.content ?? '')) + Buffer.byteLength(calls)
}
