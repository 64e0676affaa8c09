import { type ChatMessage, correctionMessages, type Reasoning } from '../core/chat.ts'
import {
  type ChatLoop,
  type ChatOutcome,
  type ChatRun,
  ignoringFailure,
  isComplete,
  outcomeReason,
  stage,
} from './chat-run.ts'
import { selectionSchema, type ToolSelectionResponse } from './constrain/stage-schemas.ts'
import { isResumed, withQuestion, withSystem, withUniqueIds } from './conversation.ts'
import { collectAnswer, type ModelAnswer } from './models/model.ts'
import {
  beginsLikeCalls,
  callsInText,
  type MadeCall,
  type ParsedCall,
  parseCalls,
  parseObject,
} from './parse-answer.ts'
import { answerDirectly } from './stages/answer.ts'
import { discoverTools } from './stages/discover.ts'
import { execute, roundMessages } from './stages/execute.ts'
import { interpret } from './stages/interpret.ts'
import { splitThinking } from './stream/thinking.ts'
import { callsToMake, definitionsOf, isForClient, namedTool, ToolSet, toolLines } from './tool-set.ts'

/** The staged loop (S3) runs each stage once; a tool that the request names needs no selection. If selection or calling fails, the model answers without tools (S5). */
export async function* answerInStages(run: ChatRun): ChatLoop {
  const { request, messages } = run
  const named = namedTool(request)
  if (isResumed(messages) && !named && request.toolChoice !== 'required') {
    yield stage(run, 'interpret')
    return yield* interpret(run, messages)
  }
  if (request.toolChoice === 'none') return yield* answerDirectly(run)

  yield stage(run, 'discover')
  const toolSet = await discoverTools(run)
  if (toolSet.tools.length === 0) return yield* answerDirectly(run)

  let failure: string | undefined
  const failed = (reason: string) => {
    failure = reason
  }
  const withoutTools = (problem: string) =>
    run.note(
      failure === undefined
        ? `The model did not ${problem}; it answers without tools.`
        : `The model answers without tools, because a request to it failed: ${failure}`,
    )
  if (!named) yield stage(run, 'select')
  const selected = named ? toolSet : await ignoringFailure(run, selectForAnswer(run, toolSet), failed)
  if (!selected) withoutTools('select tools in a usable form')
  const mustCall = request.toolChoice === 'required'
  const chosen = selected?.tools.length ? selected : selected && mustCall ? toolSet : undefined
  if (!chosen) return yield* answerDirectly(run)

  yield stage(run, 'call')
  const called = await callTools(run, chosen, failed)
  if (!called) {
    withoutTools('make usable tool calls')
    return yield* answerDirectly(run)
  }
  if ('answer' in called) {
    yield { kind: 'text', text: called.answer }
    return { reason: called.reason }
  }

  yield stage(run, 'execute')
  const made = callsToMake(request, called.calls)
  const theirs = made.filter(isForClient)
  const ours = made.filter((one) => !isForClient(one))
  const round = roundMessages('', made, yield* execute(run, ours), called.reasoning)
  if (theirs.length > 0) {
    const calls = theirs.map((one) => one.call)
    return { reason: 'calls', handed: await run.clientToolState.keep(request.caller, round, calls) }
  }
  yield stage(run, 'interpret')
  return yield* interpret(run, [...messages, ...round])
}

/** Asks which tools are needed, at most twice; `undefined` if there is no usable answer. */
async function selectForAnswer(run: ChatRun, toolSet: ToolSet): Promise<ToolSet | undefined> {
  const schema = selectionSchema(toolSet.tools.map(({ callable }) => callable.name))
  let messages = selectionMessages(run, toolSet)
  for (const isLast of [false, true]) {
    const answer = await collectAnswer(run.ask({ messages, constraint: { name: 'tool_selection', schema } }))
    const { tools, problem } = readSelection(answer, toolSet)
    if (problem === undefined) return new ToolSet(tools)
    // After the last attempt, use the valid part of the selection.
    if (isLast) return tools.length > 0 ? new ToolSet(tools) : undefined
    messages = [...messages, ...correctionMessages(answer.text, problem)]
  }
  return undefined
}

/** Replaces the last user message with the prompt that lists the tools. */
function selectionMessages(run: ChatRun, { tools }: ToolSet): readonly ChatMessage[] {
  const content = run.prompt('candidates', { tools: toolLines(tools), definitions: definitionsOf(tools) })
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

/** The calls, or the text that the model wrote instead. */
type CallStageResult =
  | { readonly calls: readonly ParsedCall[]; readonly reasoning?: Reasoning }
  | { readonly answer: string; readonly reason: ChatOutcome['reason'] }

/**
 * Asks for calls to the selected tools, at most twice; `undefined` if there is neither a valid call nor an answer.
 * Calls `failed` if a request to the model fails.
 */
async function callTools(
  run: ChatRun,
  toolSet: ToolSet,
  failed: (reason: string) => void,
): Promise<CallStageResult | undefined> {
  const tools = toolSet.tools.map(({ callable }) => callable)
  const named = namedTool(run.request)
  const toolChoice = named || run.request.toolChoice === 'required' ? 'required' : 'auto'
  const asked = withQuestion(run.messages, run.prompt('request'))
  let messages: readonly ChatMessage[] = withSystem(run.prompt('call'), asked)
  let best: Extract<CallStageResult, { calls: object }> | undefined
  let spoken: CallStageResult | undefined
  for (const isLast of [false, true]) {
    const answer = await ignoringFailure(run, collectAnswer(run.ask({ messages, tools, toolChoice })), failed)
    if (!answer) continue
    const { text } = splitThinking(answer.text)
    const made: readonly MadeCall[] = answer.calls.length > 0 ? answer.calls : callsInText(text, toolSet)
    const calls = named ? made.slice(0, 1) : made
    if (calls.length === 0) {
      if (toolChoice === 'auto' && isPlainAnswer(text)) spoken = { answer: text, reason: outcomeReason(answer.reason) }
      messages = [...messages, ...correctionMessages(answer.text, noCall)]
      continue
    }
    const parsed = await parseCalls(withUniqueIds(calls, messages), toolSet, run.validate, isComplete(answer.reason))
    const { reasoning } = answer
    if (parsed.every(({ problem }) => problem === undefined)) return { calls: parsed, reasoning }
    if (parsed.some(({ problem }) => problem === undefined)) best = { calls: parsed, reasoning }
    if (!isLast) messages = [...messages, ...refusedMessages(parsed, reasoning)]
  }
  if (!best && spoken) run.note('The model called no tool; its text is the answer.')
  // Invalid calls in the answer are not run; the problem with each becomes its result.
  return best ?? spoken
}

const noCall = 'It calls no tool. Call the tools that are needed; if none is, write the answer for the user once more.'

const isPlainAnswer = (text: string): boolean => text.trim() !== '' && !beginsLikeCalls(text)

/** The calls as messages, each with its problem as the tool result. */
function refusedMessages(parsed: readonly ParsedCall[], reasoning?: Reasoning): readonly ChatMessage[] {
  const wait = 'Not run yet: another call in this answer is invalid. Repeat this call together with the corrected one.'
  const ran = parsed.map(({ call, problem }) => ({ call, text: problem === undefined ? wait : `Error: ${problem}` }))
  return roundMessages('', parsed, ran, reasoning)
}
