import type { ChatMessage } from '../../core/chat.ts'
import type { Turn } from '../chat-run.ts'
import { selectionSchema, type ToolSelectionResponse } from '../constrain/stage-schemas.ts'
import { corrected, lastQuestion, withSystem } from '../conversation.ts'
import { gather } from '../models/model.ts'
import { readObject } from '../parse-answer.ts'
import { listed, type Offer, type Offered, offerOf } from '../tool-set.ts'

/** Asks which of the tools are needed; `undefined` where no usable answer can be had, also not when asked again. */
export async function select(turn: Turn, offer: Offer): Promise<Offer | undefined> {
  const schema = selectionSchema(offer.tools.map(({ callable }) => callable.name))
  let messages = selectionMessages(turn, offer)
  for (const isLast of [false, true]) {
    const { text, restore } = await gather(turn.ask({ messages, constraint: { name: 'tool_selection', schema } }))
    const { tools, problem } = readSelection(text, restore, offer)
    if (problem === undefined) return offerOf(tools)
    // Whatever is right in it is still a selection.
    if (isLast) return tools.length > 0 ? offerOf(tools) : undefined
    messages = [...messages, ...corrected(text, problem)]
  }
  return undefined
}

/** The user's text and the tools stand where the user's text stood; what was said before stays before it. */
function selectionMessages(turn: Turn, offer: Offer): readonly ChatMessage[] {
  const { messages } = turn
  const content = turn.prompt('candidates', { tools: listed(offer.tools) })
  const others = messages.toSpliced(Math.max(0, lastQuestion(messages)), 1)
  return [...withSystem(turn.prompt('select'), others), { role: 'user', content }]
}

/** The tools that an answer names, and what is wrong with it, if anything. */
function readSelection(
  text: string,
  restore: (value: unknown) => unknown,
  offer: Offer,
): { readonly tools: readonly Offered[]; readonly problem?: string } {
  const read = readObject(text, { accepts: (value) => 'selected_tools' in value, ended: true })
  if ('problem' in read) return { tools: [], problem: `It ${read.problem}.` }
  const { reasoning, selected_tools: names } = restore(read.value) as Partial<ToolSelectionResponse>
  if (!Array.isArray(names)) return { tools: [], problem: 'selected_tools is missing, or no list.' }
  const isName = (name: unknown): name is string => typeof name === 'string'
  const unknown = names.filter(isName).filter((name) => !offer.find(name))
  const tools = [...new Set(names.filter(isName).flatMap((name) => offer.find(name) ?? []))]
  const problems = [
    ...(typeof reasoning === 'string' ? [] : ['reasoning is missing, or no text.']),
    ...(names.every(isName) ? [] : ['selected_tools holds something other than names.']),
    ...unknown.slice(0, 5).map((name) => offer.missing(name)),
  ]
  return { tools, ...(problems.length > 0 && { problem: problems.join(' ') }) }
}
