import type { ChatEvent, FunctionCall } from '../../core/chat.ts'
import { type ChatLoop, type ChatRun, isRetryable, type ModelQuery, reasonOf, stage } from '../chat-run.ts'
import { withSystem } from '../conversation.ts'
import { answerFrom, type Delta, type EndReason } from '../models/model.ts'
import { createThinkingSplitter, type TextPart } from '../stream/thinking.ts'

/** The model's unconstrained answer. */
export interface StreamedAnswer {
  /** The whole text, without thinking. */
  readonly text: string
  /** Text held back because it may be a call. */
  readonly held: string
  readonly calls: readonly FunctionCall[]
  readonly reason: EndReason
}

export interface StreamAnswerOptions {
  /** Whether to hold back a text with this beginning until it is complete. */
  readonly holds?: (beginning: string) => boolean
  /** Separator before the text. */
  readonly before?: string
}

/**
 * Streams an unconstrained answer. Retries once if there was no output; if the model breaks off, the text so far is the
 * answer.
 */
export async function* streamAnswer(
  run: ChatRun,
  question: ModelQuery,
  options: StreamAnswerOptions = {},
): AsyncGenerator<ChatEvent, StreamedAnswer> {
  const { stream = false, maxTokens } = run.request
  const asked = { ...question, stream, maxTokens }
  for (let attempt = 1; ; attempt++) {
    const deltas: Delta[] = []
    const answerSplitter = createAnswerSplitter(options)
    try {
      for await (const delta of run.ask(asked)) {
        deltas.push(delta)
        yield* answerSplitter.tell(delta)
      }
      yield* answerSplitter.end()
      const { calls, reason } = answerFrom(deltas)
      return { ...answerSplitter.current(), calls, reason }
    } catch (error) {
      if (run.signal.aborted) throw error
      const { text } = answerSplitter.current()
      if (text !== '') {
        run.note('The model broke off in the middle of its answer.')
        return { ...answerSplitter.current(), calls: [], reason: 'length' }
      }
      if (attempt > 1 || !isRetryable(error)) throw error
    }
  }
}

interface AnswerSplitter {
  tell(delta: Delta): readonly ChatEvent[]
  end(): readonly ChatEvent[]
  current(): Pick<StreamedAnswer, 'text' | 'held'>
}

function createAnswerSplitter({ holds = () => false, before = '' }: StreamAnswerOptions): AnswerSplitter {
  const splitter = createThinkingSplitter()
  const pieces: string[] = []
  let state: 'blank' | 'held' | 'told' = 'blank'

  const events = (parts: readonly TextPart[]): readonly ChatEvent[] =>
    parts.flatMap((part): readonly ChatEvent[] => {
      if (part.kind === 'thinking') return [part]
      pieces.push(part.text)
      if (state === 'told') return [part]
      // Whitespace does not tell yet what follows.
      if (state === 'held' || part.text.trim() === '') return []
      const beginning = pieces.join('')
      state = holds(beginning) ? 'held' : 'told'
      return state === 'told' ? [{ kind: 'text', text: before + beginning }] : []
    })

  return {
    tell: (delta) =>
      delta.kind === 'text' ? events(splitter.push(delta.text)) : delta.kind === 'thinking' ? [delta] : [],
    end: () => events(splitter.end()),
    current() {
      const text = pieces.join('')
      return { text, held: state === 'held' ? text : '' }
    },
  }
}

/** Answers without tools. */
export async function* answerDirectly(run: ChatRun): ChatLoop {
  yield stage('answer')
  const { text, reason } = yield* streamAnswer(run, { messages: withSystem(run.prompt('direct'), run.messages) })
  if (text.trim() === '') run.note('The model gave an empty answer.')
  return { reason: reasonOf(reason) }
}
