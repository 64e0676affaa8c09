import type { ChatMessage } from '../../core/chat.ts'
import type { SchemaObject } from '../constrain/schema.ts'
import type { CallableTool } from '../constrain/stages.ts'

/** The messages, with something added to what the system says. Many templates know one system message, and that first. */
export function instructed(messages: readonly ChatMessage[], instruction: string): readonly ChatMessage[] {
  const [first, ...rest] = messages
  if (first?.role !== 'system' || typeof first.content !== 'string') {
    return [{ role: 'system', content: instruction }, ...messages]
  }
  return [{ role: 'system', content: `${first.content}\n\n${instruction}` }, ...rest]
}

/** Asks in words for what cannot be enforced. */
export const schemaInstruction = (schema: SchemaObject): string =>
  `Answer with one JSON object and nothing else: no explanation, no code fence. It must fit this JSON Schema:\n${JSON.stringify(schema)}`

/** Says in words which tools there are. */
export function toolsInstruction(tools: readonly CallableTool[], mustCall: boolean): string {
  const listed = tools.map(({ name, description, parameters }) =>
    JSON.stringify({ name, ...(description !== undefined && { description }), parameters }),
  )
  const how = mustCall
    ? 'Answer with the calls to make as {"tool_calls": [{"name": …, "arguments": {…}}]}.'
    : 'To call some, answer with {"tool_calls": [{"name": …, "arguments": {…}}]}; otherwise answer with {"content": "…"}.'
  return `These tools can be called:\n${listed.join('\n')}\n${how}`
}

/** A conversation about tools told to a server that knows none: calls and results as plain text. */
export function withoutToolMessages(messages: readonly ChatMessage[]): readonly ChatMessage[] {
  const names = new Map<string, string>()
  return messages.map((message): ChatMessage => {
    if (message.role === 'tool') {
      return { role: 'user', content: `Result of ${names.get(message.tool_call_id) ?? 'a tool'}:\n${message.content}` }
    }
    if (message.role !== 'assistant' || !message.tool_calls?.length) return message
    for (const { id, function: called } of message.tool_calls) names.set(id, called.name)
    const calls = message.tool_calls.map(({ function: called }) => ({
      name: called.name,
      arguments: parsed(called.arguments),
    }))
    return {
      role: 'assistant',
      content: JSON.stringify({ ...(message.content && { content: message.content }), tool_calls: calls }),
    }
  })
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}
