import type { ChatEvent, FunctionCall, Reasoning } from '../../core/chat.ts'
import { type ChatLoop, type ChatRun, isRetryable, type ModelQuery, outcomeReason, stage } from '../chat-run.ts'
import { withSystem } from '../conversation.ts'
import { answerFrom, type Delta, type EndReason } from '../models/model.ts'
import { createThinkingSplitter, type TextPart } from '../stream/thinking.ts'

export interface StreamedAnswer {
  /** The whole text, without thinking. */
  readonly text: string
  /** Text that was not streamed because it may be a call. */
  readonly held: string
  readonly calls: readonly FunctionCall[]
  readonly reason: EndReason
  readonly reasoning?: Reasoning
}

interface StreamAnswerOptions {
  /** Whether text with this beginning must be held back until it is complete. */
  readonly holds?: (beginning: string) => boolean
  /** Separator to emit before the text. */
  readonly before?: string
}

/** Streams an unconstrained answer. If the model fails, returns the text so far, or asks once more if there is none. */
export async function* streamModelAnswer(
  run: ChatRun,
  question: ModelQuery,
  options: StreamAnswerOptions = {},
): AsyncGenerator<ChatEvent, StreamedAnswer> {
  const { stream = false, maxTokens } = run.request
  for (let attempt = 1; ; attempt++) {
    const deltas: Delta[] = []
    const answerSplitter = createAnswerSplitter(options)
    try {
      for await (const delta of run.ask({ ...question, stream, maxTokens })) {
        deltas.push(delta)
        yield* answerSplitter.push(delta)
      }
      yield* answerSplitter.end()
      const { calls, reason, reasoning } = answerFrom(deltas)
      return { ...answerSplitter.current(), calls, reason, reasoning }
    } catch (error) {
      if (run.signal.aborted) throw error
      const current = answerSplitter.current()
      if (current.text !== '') {
        run.note('The model stopped in the middle of its answer.', error)
        return { ...current, calls: [], reason: 'length' }
      }
      if (attempt > 1 || !isRetryable(error)) throw error
    }
  }
}

function createAnswerSplitter({ holds = () => false, before = '' }: StreamAnswerOptions) {
  const splitter = createThinkingSplitter()
  const pieces: string[] = []
  let state: 'blank' | 'held' | 'streamed' = 'blank'

  const events = (parts: readonly TextPart[]): readonly ChatEvent[] =>
    parts.flatMap((part): readonly ChatEvent[] => {
      if (part.kind === 'thinking') return [part]
      pieces.push(part.text)
      if (state === 'streamed') return [part]
      // Wait for more than whitespace before deciding whether the text must be held back.
      if (state === 'held' || part.text.trim() === '') return []
      const beginning = pieces.join('')
      state = holds(beginning) ? 'held' : 'streamed'
      return state === 'streamed' ? [{ kind: 'text', text: before + beginning }] : []
    })

  return {
    push: (delta: Delta): readonly ChatEvent[] =>
      delta.kind === 'text' ? events(splitter.push(delta.text)) : delta.kind === 'thinking' ? [delta] : [],
    end: () => events(splitter.end()),
    current() {
      const text = pieces.join('')
      return { text, held: state === 'held' ? text : '' }
    },
  }
}

export async function* answerDirectly(run: ChatRun): ChatLoop {
  yield stage(run, 'answer')
  const { text, reason } = yield* streamModelAnswer(run, { messages: withSystem(run.prompt('direct'), run.messages) })
  if (text.trim() === '') run.note('The model gave an empty answer.')
  return { reason: outcomeReason(reason) }
}
