import type { ChatMessage } from '../core/chat.ts'
import { pluralize } from '../lib/message-text.ts'
import { type ChatLoop, type ChatRun, isComplete, outcomeReason, stage } from './chat-run.ts'
import { withSystem, withUniqueIds } from './conversation.ts'
import { beginsLikeCalls, callsInText, type MadeCall, parseCalls } from './parse-answer.ts'
import { answerDirectly, type StreamedAnswer, streamModelAnswer } from './stages/answer.ts'
import { discoverTools } from './stages/discover.ts'
import { type CallResult, execute, roundMessages } from './stages/execute.ts'
import { answerWithResults } from './stages/interpret.ts'
import { callsToMake, isForClient } from './tool-set.ts'

/** The agent loop (J5): the model calls tools and sees their results until it answers or is stopped. */
export async function* answerAsAgent(run: ChatRun): ChatLoop {
  const { request, config } = run
  if (request.toolChoice === 'none') return yield* answerDirectly(run)
  yield stage(run, 'discover')
  const toolSet = await discoverTools(run)
  if (toolSet.tools.length === 0) return yield* answerDirectly(run)

  const tools = toolSet.tools.map(({ callable }) => callable)
  const opening = withSystem(run.prompt('agent'), run.messages)
  const hasClientTools = toolSet.tools.some(({ served }) => !served)
  const added: ChatMessage[] = []
  const rounds: (readonly AgentCall[])[] = []
  let before = ''

  for (let round = 1; ; round++) {
    yield stage(run, 'call', round)
    // `required` applies to the first round only, so that the model can answer afterwards. A client with its own tools
    // expects a call of one of them, which ends the loop.
    const mustCall = request.toolChoice === 'required' && (round === 1 || hasClientTools)
    const toolChoice = mustCall ? 'required' : 'auto'
    const messages = [...opening, ...added]
    let answer: StreamedAnswer
    try {
      answer = yield* streamModelAnswer(run, { messages, tools, toolChoice }, { holds: beginsLikeCalls, before })
    } catch (error) {
      if (run.signal.aborted || added.length === 0) throw error
      return yield* answerWithResults(run, added, 'The model failed before it gave an answer', error)
    }

    const made: readonly MadeCall[] = answer.calls.length > 0 ? answer.calls : callsInText(answer.held, toolSet)
    if (made.length === 0) {
      if (answer.held !== '') yield { kind: 'text', text: before + answer.held }
      if (answer.text.trim() === '' && added.length > 0) {
        return yield* answerWithResults(run, added, 'The model gave no answer')
      }
      if (answer.text.trim() === '') run.note('The model gave an empty answer.')
      return { reason: outcomeReason(answer.reason) }
    }

    yield stage(run, 'execute', round)
    const commentary = answer.held === '' ? answer.text.trim() : ''
    const parsed = await parseCalls(withUniqueIds(made, messages), toolSet, run.validate, isComplete(answer.reason))
    const calls = callsToMake(request, parsed)
    const ours = calls.filter((call) => !isForClient(call))
    const ran = withHints(rounds, yield* execute(run, ours))
    added.push(...roundMessages(commentary, calls, ran, answer.reasoning))
    const theirs = calls.filter(isForClient).map(({ call }) => call)
    if (theirs.length > 0)
      return { reason: 'calls', handed: await run.clientToolState.keep(request.caller, added, theirs) }

    if (commentary !== '') before = '\n\n'
    rounds.push(ran.map(agentCall))
    const why = stopReason(rounds, request.maxSteps ?? config.maxSteps)
    if (why !== undefined) return yield* lastAnswer(why, round + 1)
  }

  /** Asks for a final answer without tools once the loop has been stopped. */
  async function* lastAnswer(why: string, round: number): ChatLoop {
    run.note(`The model had to answer without more tool calls, because ${why}.`)
    yield stage(run, 'answer', round)
    const content = `No more tools can be called, because ${why}. Answer now with what you know, and state what is missing.`
    let failure: unknown
    try {
      const messages: readonly ChatMessage[] = [...opening, ...added, { role: 'user', content }]
      const { text } = yield* streamModelAnswer(run, { messages }, { before })
      if (text.trim() !== '') return { reason: 'steps' }
    } catch (error) {
      if (run.signal.aborted) throw error
      failure = error
    }
    yield* answerWithResults(run, added, 'The model gave no answer', failure)
    return { reason: 'steps' }
  }
}

type AgentCall = ReturnType<typeof agentCall>

const agentCall = ({ call, text, isError }: CallResult) => ({ ...call.function, result: text, isError })

/** Adds a hint to the result of each call that was already made with the same result. */
const withHints = (rounds: readonly (readonly AgentCall[])[], ran: readonly CallResult[]): readonly CallResult[] =>
  ran.map((one) => {
    const isRepeated = countRepeats(rounds, agentCall(one)) > 0
    return isRepeated ? { ...one, hint: 'You made this call before, with the same result.' } : one
  })

/** Stop after this many identical calls with identical results. */
const maxRepeats = 4

/** Returns the reason for stopping, which completes the sentence "no more tools, because …"; undefined to continue. */
function stopReason(rounds: readonly (readonly AgentCall[])[], maxSteps: number): string | undefined {
  if (rounds.length >= maxSteps) return `the limit of ${pluralize(maxSteps, 'step')} was reached`
  const repeated = rounds.at(-1)?.find((call) => countRepeats(rounds, call) >= maxRepeats)
  return repeated && `${repeated.name} was called ${maxRepeats} times with the same arguments and the same result`
}

/** The number of calls in these rounds with the same name, arguments and result. */
const countRepeats = (rounds: readonly (readonly AgentCall[])[], call: AgentCall): number =>
  rounds.flat().filter((other) => (['name', 'arguments', 'result'] as const).every((key) => other[key] === call[key]))
    .length
