import type { ChatEvent, FunctionCall } from '../../core/chat.ts'
import { isWorthAnother, type Loop, type Question, reasonOf, stage, type Turn } from '../chat-run.ts'
import { withSystem } from '../conversation.ts'
import { type Delta, type EndReason, gathered } from '../models/model.ts'
import { createThinkingSplitter, type Said } from '../stream/thinking.ts'

/** What a model has said in words of its own. */
export interface Spoken {
  /** All of it, without thoughts. */
  readonly text: string
  /** What has not been told yet, because it may be no text for anybody to read. */
  readonly held: string
  readonly calls: readonly FunctionCall[]
  readonly reason: EndReason
}

export interface SpeakOptions {
  /** Whether a text that begins so is to be kept back until it has come whole. */
  readonly holds?: (beginning: string) => boolean
  /** Stands between what was told before and this. */
  readonly before?: string
}

/**
 * Lets the model speak without a constraint, and tells it as it comes. Where nothing has come of it, it is asked once
 * more; where it broke off, what has been told is its answer.
 */
export async function* speak(
  turn: Turn,
  question: Question,
  options: SpeakOptions = {},
): AsyncGenerator<ChatEvent, Spoken> {
  const { stream = false, maxTokens } = turn.request
  const asked = { ...question, stream, ...(maxTokens !== undefined && { maxTokens }) }
  for (let attempt = 1; ; attempt++) {
    const deltas: Delta[] = []
    const teller = createTeller(options)
    try {
      for await (const delta of turn.ask(asked)) {
        deltas.push(delta)
        yield* teller.tell(delta)
      }
      yield* teller.end()
      const { calls, reason } = gathered(deltas)
      return { ...teller.spoken(), calls, reason }
    } catch (error) {
      if (turn.signal.aborted) throw error
      const { text } = teller.spoken()
      if (text !== '') {
        turn.note('The model broke off in the middle of its answer.')
        return { ...teller.spoken(), calls: [], reason: 'length' }
      }
      if (attempt > 1 || !isWorthAnother(error)) throw error
    }
  }
}

interface Teller {
  tell(delta: Delta): readonly ChatEvent[]
  end(): readonly ChatEvent[]
  spoken(): Pick<Spoken, 'text' | 'held'>
}

function createTeller({ holds = () => false, before = '' }: SpeakOptions): Teller {
  const splitter = createThinkingSplitter()
  const pieces: string[] = []
  let state: 'blank' | 'held' | 'told' = 'blank'

  const events = (said: readonly Said[]): readonly ChatEvent[] =>
    said.flatMap((part): readonly ChatEvent[] => {
      if (part.kind === 'thinking') return [part]
      pieces.push(part.text)
      if (state === 'told') return [part]
      // Spaces alone say nothing, neither to a reader nor about what is to come.
      if (state === 'held' || part.text.trim() === '') return []
      const beginning = pieces.join('')
      state = holds(beginning) ? 'held' : 'told'
      return state === 'told' ? [{ kind: 'text', text: before + beginning }] : []
    })

  return {
    tell: (delta) =>
      delta.kind === 'text' ? events(splitter.push(delta.text)) : delta.kind === 'thinking' ? [delta] : [],
    end: () => events(splitter.end()),
    spoken() {
      const text = pieces.join('')
      return { text, held: state === 'held' ? text : '' }
    },
  }
}

/** Answers without any tools. */
export async function* direct(turn: Turn): Loop {
  yield stage('answer')
  const { text, reason } = yield* speak(turn, { messages: withSystem(turn.prompt('direct'), turn.messages) })
  if (text.trim() === '') turn.note('The model gave an empty answer.')
  return { reason: reasonOf(reason) }
}
