import type { ChatMessage } from '../core/chat.ts'
import { hasEnded, type Loop, reasonOf, stage, type Turn } from './chat-run.ts'
import { freshIds, withSystem } from './conversation.ts'
import { beginsLikeCalls, callsInText, readCalls } from './parse-answer.ts'
import { direct, type Spoken, speak } from './stages/answer.ts'
import { discover } from './stages/discover.ts'
import { execute, type Ran, roundMessages } from './stages/execute.ts'
import { rawAnswer } from './stages/interpret.ts'
import { isForClient, type Offer, offerOf } from './tool-set.ts'

/** Ways to take part in the agent loop. */
export interface AgentHooks {
  /** Looked at after every step, beside the limit of steps and the watch over repetition. */
  readonly stopWhen?: readonly StopCondition[]
  /** Changes what the model is offered in the next step. */
  prepareStep?(state: { readonly round: number; readonly steps: readonly AgentStep[] }): PreparedStep | undefined
}

export interface PreparedStep {
  /** Only these of the tools, by the names that the model knows. */
  readonly tools?: readonly string[]
  readonly toolChoice?: 'auto' | 'required'
}

/** The agent loop (J5): the model calls tools and sees their results, until it has an answer or is stopped. */
export async function* agent(turn: Turn, hooks: AgentHooks = {}): Loop {
  const { request, config } = turn
  if (request.toolChoice === 'none') return yield* direct(turn)
  yield stage('discover')
  const offer = await discover(turn)
  if (offer.tools.length === 0) return yield* direct(turn)

  const stops = [stepLimit(request.maxSteps ?? config.maxSteps), noCircles, ...(hooks.stopWhen ?? [])]
  const opening = withSystem(turn.prompt('agent'), turn.messages)
  const added: ChatMessage[] = []
  const steps: AgentStep[] = []
  let before = ''

  for (let round = 1; ; round++) {
    yield stage('call', round)
    const { offered, toolChoice } = prepared(turn, hooks, offer, { round, steps })
    const messages = [...opening, ...added]
    const tools = offered.tools.map(({ callable }) => callable)
    let spoken: Spoken
    try {
      const question = tools.length > 0 ? { messages, tools, toolChoice } : { messages }
      spoken = yield* speak(turn, question, { holds: beginsLikeCalls, before })
    } catch (error) {
      if (turn.signal.aborted || added.length === 0) throw error
      return yield* giveResults(turn, added, 'The model failed before it had answered')
    }

    const made = spoken.calls.length > 0 ? spoken.calls : callsInText(spoken.held, offered)
    if (made.length === 0) {
      if (spoken.held !== '') yield { kind: 'text', text: before + spoken.held }
      if (spoken.text.trim() === '' && added.length > 0) {
        return yield* giveResults(turn, added, 'The model gave no answer')
      }
      if (spoken.text.trim() === '') turn.note('The model gave an empty answer.')
      return { reason: reasonOf(spoken.reason) }
    }

    yield stage('execute', round)
    const said = spoken.held === '' ? spoken.text.trim() : ''
    const calls = await readCalls(freshIds(made, messages), offered, turn.validate, hasEnded(spoken.reason))
    const ours = calls.filter((call) => !isForClient(call))
    const ran = warned(steps, yield* execute(turn, ours))
    added.push(...roundMessages(said, calls, ran))
    const theirs = calls.filter(isForClient).map(({ call }) => call)
    if (theirs.length > 0) return { reason: 'calls', handed: await turn.handovers.keep(request.caller, added, theirs) }

    if (said !== '') before = '\n\n'
    steps.push({ text: said, calls: ran.map(asStep) })
    const why = stops.map((stop) => stop(steps)).find((reason) => reason !== undefined)
    if (why !== undefined) return yield* lastAnswer(turn, { opening, added, why, before, round: round + 1 })
  }
}

/** What the model is offered in a step. A tool has to be called at most once: after that it must be able to answer. */
function prepared(turn: Turn, hooks: AgentHooks, offer: Offer, state: { round: number; steps: readonly AgentStep[] }) {
  const { tools: names, toolChoice } = hooks.prepareStep?.(state) ?? {}
  const offered = names ? offerOf(offer.tools.filter(({ callable }) => names.includes(callable.name))) : offer
  const asked = state.round === 1 && turn.request.toolChoice === 'required' ? 'required' : 'auto'
  return { offered, toolChoice: toolChoice ?? asked }
}

const asStep = ({ call, text, isError }: Ran) => ({ ...call.function, result: text, isError })

/** The results, with a word to a model that has had one of them before. */
const warned = (steps: readonly AgentStep[], ran: readonly Ran[]): readonly Ran[] =>
  ran.map((one) => {
    const isRepeated = timesMade(steps, asStep(one)) > 0
    return isRepeated ? { ...one, hint: 'You have made this very call before, and its result was the same.' } : one
  })

interface Stopped {
  readonly opening: readonly ChatMessage[]
  readonly added: readonly ChatMessage[]
  readonly why: string
  readonly before: string
  readonly round: number
}

/** One answer without any tools, for a model that would have gone on. */
async function* lastAnswer(turn: Turn, { opening, added, why, before, round }: Stopped): Loop {
  turn.note(`The model had to answer without further tools, because ${why}.`)
  yield stage('answer', round)
  const word = `No more tools can be called, because ${why}. Answer now with what you know, and say what is missing.`
  const messages: readonly ChatMessage[] = [...opening, ...added, { role: 'user', content: word }]
  try {
    const { text } = yield* speak(turn, { messages }, { before })
    if (text.trim() !== '') return { reason: 'steps' }
  } catch (error) {
    if (turn.signal.aborted) throw error
  }
  yield* giveResults(turn, added, 'The model gave no answer')
  return { reason: 'steps' }
}

/** What S5 has for a model that cannot tell of its results. */
async function* giveResults(turn: Turn, added: readonly ChatMessage[], what: string): Loop {
  turn.note(`${what}; the results are given as the tools gave them.`)
  yield rawAnswer(added, false)
  return { reason: 'stop' }
}

/** One round of the agent loop. */
interface AgentStep {
  /** What the model said beside its calls. */
  readonly text: string
  readonly calls: readonly AgentCall[]
}

interface AgentCall {
  readonly name: string
  /** As JSON. */
  readonly arguments: string
  readonly result: string
  readonly isError: boolean
}

/** Looks at the steps so far and says why they should be the last, as the end of "no more tools, because …". */
type StopCondition = (steps: readonly AgentStep[]) => string | undefined

const stepLimit =
  (most: number): StopCondition =>
  (steps) =>
    steps.length >= most ? `the limit of ${most} step${most === 1 ? '' : 's'} is reached` : undefined

/** A model that gets the same answer to the same question so often learns nothing more from it. */
const maxRepeats = 4

const noCircles: StopCondition = (steps) => {
  const latest = steps.at(-1)?.calls ?? []
  const repeated = latest.find((call) => timesMade(steps, call) >= maxRepeats)
  return repeated && `${repeated.name} was called ${maxRepeats} times with the same arguments and the same result`
}

/** How often a call was made and came to the same. */
const timesMade = (steps: readonly AgentStep[], call: AgentCall): number =>
  steps
    .flatMap(({ calls }) => calls)
    .filter(({ name, arguments: args, result }) => {
      return name === call.name && args === call.arguments && result === call.result
    }).length
