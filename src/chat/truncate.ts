import type { ChatMessage } from '../core/chat.ts'
import { textOf } from './conversation.ts'

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
export function oneLine(text: string, maxLength = 160): string {
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
  let excess = messages.reduce((sum, message) => sum + sizeOf(message), 0) - maxBytes
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

function sizeOf(message: ChatMessage): number {
  const { role, content, ...callsAndReasoning } = message
  const others = role === 'assistant' ? JSON.stringify(callsAndReasoning) : ''
  return Buffer.byteLength(textOf(content ?? '')) + Buffer.byteLength(others)
}
