import { type ChatMessage, correctionMessages, type Reasoning } from '../../core/chat.ts'
import { type ChatOutcome, type ChatRun, ignoringFailure, isComplete, reasonOf } from '../chat-run.ts'
import { withQuestion, withSystem, withUniqueIds } from '../conversation.ts'
import { collectAnswer } from '../models/model.ts'
import { beginsLikeCalls, callsInText, type MadeCall, type ParsedCall, parseCalls } from '../parse-answer.ts'
import { splitThinking } from '../stream/thinking.ts'
import { namedTool, type ToolSet } from '../tool-set.ts'
import { roundMessages } from './execute.ts'

/** The calls, or the text that the model wrote instead. */
export type CallStageResult =
  | { readonly calls: readonly ParsedCall[]; readonly reasoning?: Reasoning }
  | { readonly answer: string; readonly reason: ChatOutcome['reason'] }

/**
 * Asks for calls to the selected tools, at most twice; `undefined` if there is neither a valid call nor an answer.
 * Calls `failed` if a request to the model fails.
 */
export async function call(
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
      if (toolChoice === 'auto' && isAnswer(text)) spoken = { answer: text, reason: reasonOf(answer.reason) }
      messages = [...messages, ...correctionMessages(answer.text, noCall)]
      continue
    }
    const parsed = await parseCalls(withUniqueIds(calls, messages), toolSet, run.validate, isComplete(answer.reason))
    const { reasoning } = answer
    if (parsed.every(({ problem }) => problem === undefined)) return { calls: parsed, reasoning }
    if (parsed.some(({ problem }) => problem === undefined)) best = { calls: parsed, reasoning }
    if (!isLast) messages = [...messages, ...refused(parsed, reasoning)]
  }
  if (!best && spoken) run.note('The model called no tool; its text is the answer.')
  // Invalid calls in the answer are not run; the problem with each becomes its result.
  return best ?? spoken
}

const noCall = 'It calls no tool. Call the tools that are needed; if none is, write the answer for the user once more.'

const isAnswer = (text: string): boolean => text.trim() !== '' && !beginsLikeCalls(text)

/** The calls as messages, each with its problem as the tool result. */
function refused(parsed: readonly ParsedCall[], reasoning?: Reasoning): readonly ChatMessage[] {
  const wait = 'Not run yet: another call in this answer is invalid. Repeat this call together with the corrected one.'
  const ran = parsed.map(({ call, problem }) => ({ call, text: problem === undefined ? wait : `Error: ${problem}` }))
  return roundMessages('', parsed, ran, reasoning)
}
