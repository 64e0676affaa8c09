import { type ChatEvent, type ChatMessage, correctionMessages } from '../../core/chat.ts'
import { type ChatLoop, type ChatOutcome, type ChatRun, isRetryable, outcomeReason } from '../chat-run.ts'
import { type FinalResponse, finalSchema } from '../constrain/stage-schemas.ts'
import { resultsIn, truncateText, withSystem } from '../conversation.ts'
import { answerFrom, type Delta, type ModelAnswer } from '../models/model.ts'
import { beginsLikeCalls, parseObject } from '../parse-answer.ts'
import { ContentReader } from '../stream/content-reader.ts'
import { createThinkingSplitter, splitThinking } from '../stream/thinking.ts'

/** Summarizes the tool results for the user; falls back to the raw results (S5). */
export async function* interpret(run: ChatRun, conversation: readonly ChatMessage[]): ChatLoop {
  let messages: readonly ChatMessage[] = withSystem(run.prompt('interpret'), conversation)
  let failure: unknown
  for (const _attempt of [1, 2]) {
    const streamed = { text: '' }
    try {
      const read = yield* attemptSummary(run, messages, streamed)
      if (!('problem' in read)) return { reason: read.reason }
      messages = [...messages, ...correctionMessages(read.answer, read.problem)]
      failure = undefined
    } catch (error) {
      if (run.signal.aborted) throw error
      failure = error
      if (streamed.text === '' && !isRetryable(error)) break
    }
    // Do not try again after streaming text: it cannot be taken back, and a second attempt would repeat it.
    if (streamed.text !== '')
      return yield* answerWithResults(
        run,
        conversation,
        'The model stopped while summarizing the results',
        failure,
        true,
      )
  }
  return yield* answerWithResults(run, conversation, 'The model could not summarize the results', failure)
}

/** The part of the answer that has not been streamed yet, or what is wrong with the answer. */
type FinalAnswer =
  | { readonly rest: string; readonly reason: ChatOutcome['reason'] }
  | { readonly problem: string; readonly answer: string }

async function* attemptSummary(
  run: ChatRun,
  messages: readonly ChatMessage[],
  streamed: { text: string },
): AsyncGenerator<ChatEvent, FinalAnswer> {
  const { stream = false, maxTokens } = run.request
  const constraint = { name: 'final_response', schema: finalSchema }
  const follow = stream ? createFollower() : thoughtsOnly
  const deltas: Delta[] = []
  for await (const delta of run.ask({ messages, constraint, stream, maxTokens })) {
    deltas.push(delta)
    for (const event of follow(delta)) {
      if (event.kind === 'text') streamed.text += event.text
      yield event
    }
  }
  const answer = answerFrom(deltas)
  const { thinking } = stream ? { thinking: '' } : splitThinking(answer.text)
  if (thinking !== '') yield { kind: 'thinking', text: thinking }
  const read = readFinal(answer, streamed.text)
  if ('rest' in read && read.rest !== '') yield { kind: 'text', text: read.rest }
  return read
}

function readFinal({ text, reason, restore }: ModelAnswer, streamed: string): FinalAnswer {
  // If a content filter intervened, the answer is plain text, not JSON.
  if (reason === 'filtered') return { rest: streamed === '' ? text : '', reason }
  const isText = (content: unknown): content is string => typeof content === 'string' && content.trim() !== ''
  const accepts = ({ content }: Readonly<Record<string, unknown>>) => isText(content)
  const read = parseObject(text, { accepts, partial: reason === 'length', ended: true })
  const prose = streamed === '' ? proseIn(text) : undefined
  if (prose !== undefined && ('problem' in read || !isText(read.value.content))) {
    return { rest: prose, reason: outcomeReason(reason) }
  }
  if ('problem' in read) return { problem: `It ${read.problem}.`, answer: text }
  const { content } = restore(read.value) as Partial<FinalResponse>
  if (!isText(content)) return { problem: 'content is missing, empty, or not a string.', answer: text }
  if (!content.startsWith(streamed))
    return { problem: 'It does not continue the text that was already sent.', answer: text }
  return { rest: content.slice(streamed.length), reason: outcomeReason(reason) }
}

const controlCharacters = /[\0-\x08\x0e-\x1f\ufffd]/
const notProse = /^(?:null|true|false|none|undefined)$|"content"\s*:/i

/** The answer from a model that wrote plain text instead of JSON; undefined if the text is broken JSON or noise. */
function proseIn(text: string): string | undefined {
  const prose = splitThinking(text).text.trim()
  const isProse = /\p{L}{2}/u.test(prose) && !beginsLikeCalls(prose) && !prose.startsWith('"')
  return isProse && !controlCharacters.test(prose) && !notProse.test(prose) ? prose : undefined
}

type StreamEvent = Extract<ChatEvent, { kind: 'text' | 'thinking' }>

const thoughtsOnly = (delta: Delta): readonly StreamEvent[] => (delta.kind === 'thinking' ? [delta] : [])

/** Turns deltas into events that can be streamed: thinking, and the text that is already certain. */
function createFollower(): (delta: Delta) => readonly StreamEvent[] {
  const splitter = createThinkingSplitter()
  const reader = new ContentReader()
  return (delta) => {
    if (delta.kind !== 'text') return thoughtsOnly(delta)
    const parts = splitter.push(delta.text)
    const read = parts.map((part) => (part.kind === 'text' ? { ...part, text: reader.push(part.text) } : part))
    return read.filter(({ text }) => text !== '')
  }
}

/** Maximum size of each raw result, in bytes. */
const maxOfEach = 8 * 1024

/** Answers with the raw tool results, for when the model cannot summarize them (S5). */
export async function* answerWithResults(
  run: ChatRun,
  messages: readonly ChatMessage[],
  problem: string,
  error?: unknown,
  hasBegun = false,
): ChatLoop {
  run.note(`${problem}; the raw results follow.`, error)
  const results = resultsIn(messages).map(({ name, text }) => `${name}:\n${truncateText(text, maxOfEach)}`)
  const note = hasBegun
    ? '\n\n(The model stopped here. These are the raw results:)'
    : '(The model could not summarize the results. These are the raw results:)'
  yield { kind: 'text', text: [note, ...results].join('\n\n') }
  return { reason: 'stop' }
}
