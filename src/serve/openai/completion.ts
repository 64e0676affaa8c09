import type { ChatEnd, ChatEvent } from '../../core/chat.ts'
import { brokenOff } from '../tell-answer.ts'
import type { Heading } from './chunks.ts'
import { finishReason, usageOf } from './words.ts'

/** Waits for an answer and gives it whole, with what happened on the way in a member of our own. */
export async function completionOf(events: AsyncIterable<ChatEvent>, heading: Heading): Promise<object> {
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
  if (!end) throw brokenOff()
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
