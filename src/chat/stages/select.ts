import { type ChatMessage, correctionMessages } from '../../core/chat.ts'
import type { ChatRun } from '../chat-run.ts'
import { selectionSchema, type ToolSelectionResponse } from '../constrain/stage-schemas.ts'
import { withQuestion, withSystem } from '../conversation.ts'
import { collectAnswer, type ModelAnswer } from '../models/model.ts'
import { parseObject } from '../parse-answer.ts'
import { createToolSet, definitionsOf, describeTools, type ToolSet } from '../tool-set.ts'

/** Asks which tools are needed, at most twice; `undefined` if there is no usable answer. */
export async function select(run: ChatRun, toolSet: ToolSet): Promise<ToolSet | undefined> {
  const schema = selectionSchema(toolSet.tools.map(({ callable }) => callable.name))
  let messages = selectionMessages(run, toolSet)
  for (const isLast of [false, true]) {
    const answer = await collectAnswer(run.ask({ messages, constraint: { name: 'tool_selection', schema } }))
    const { tools, problem } = readSelection(answer, toolSet)
    if (problem === undefined) return createToolSet(tools)
    // After the last attempt, use the valid part of the selection.
    if (isLast) return tools.length > 0 ? createToolSet(tools) : undefined
    messages = [...messages, ...correctionMessages(answer.text, problem)]
  }
  return undefined
}

/** Replaces the last user message with the prompt that lists the tools. */
function selectionMessages(run: ChatRun, { tools }: ToolSet): readonly ChatMessage[] {
  const content = run.prompt('candidates', { tools: describeTools(tools), definitions: definitionsOf(tools) })
  return withSystem(run.prompt('select'), withQuestion(run.messages, content))
}

function readSelection({ text, restore }: ModelAnswer, toolSet: ToolSet) {
  const read = parseObject(text, { accepts: (value) => 'selected_tools' in value, ended: true })
  if ('problem' in read) return { tools: [], problem: `It ${read.problem}.` }
  const { reasoning, selected_tools: names } = restore(read.value) as Partial<ToolSelectionResponse>
  if (!Array.isArray(names)) return { tools: [], problem: 'selected_tools is missing or not a list.' }
  const isName = (name: unknown): name is string => typeof name === 'string'
  const unknown = names.filter(isName).filter((name) => !toolSet.find(name))
  const tools = [...new Set(names.filter(isName).flatMap((name) => toolSet.find(name) ?? []))]
  const problems = [
    ...(typeof reasoning === 'string' ? [] : ['reasoning is missing or not a string.']),
    ...(names.every(isName) ? [] : ['selected_tools must contain only tool names.']),
    ...unknown.slice(0, 5).map((name) => toolSet.missing(name)),
  ]
  return { tools, problem: problems.length > 0 ? problems.join(' ') : undefined }
}
