import { once } from 'node:events'
import type { Chat, ChatEnd, ChatEvent, ChatRequest } from '../../core/chat.ts'

type Script = (request: ChatRequest) => AsyncIterable<ChatEvent> | Iterable<ChatEvent>

/** A chat with scripted answers that records its requests. */
export interface TestChat extends Chat {
  readonly asked: readonly ChatRequest[]
  /** How many answers are under way. */
  readonly open: number
  /** What comes from now on. */
  script: Script
}

export const endOf = (changes: Partial<ChatEnd> = {}): ChatEnd => ({
  kind: 'end',
  reason: 'stop',
  handed: [],
  usage: { promptTokens: 11, completionTokens: 5 },
  model: 'local',
  notes: [],
  ...changes,
})

export const call = (id: string, name = 'files__read', server = 'files'): ChatEvent => ({
  ...{ kind: 'call', call: id, name, server, arguments: { path: '/a' } },
})

export const result = (id: string, text = 'done', isError = false): ChatEvent => ({
  ...{ kind: 'result', call: id, isError, durationMs: 12, text },
})

/** Two stages, one tool, an answer in two pieces. */
export const usual: readonly ChatEvent[] = [
  { kind: 'stage', stage: 'discover', round: 1 },
  { kind: 'stage', stage: 'execute', round: 1 },
  call('c1'),
  result('c1'),
  { kind: 'text', text: 'Hello ' },
  { kind: 'text', text: 'wörld' },
  endOf(),
]

export function createTestChat(script: Script = () => usual, models: readonly string[] = ['local', 'large']): TestChat {
  const asked: ChatRequest[] = []
  let open = 0
  return {
    asked,
    script,
    get open() {
      return open
    },
    models: () => models,
    visionModels: () => ['large'],
    async *answer(request) {
      asked.push(request)
      open++
      try {
        yield* this.script(request)
      } finally {
        open--
      }
    },
  }
}

/** Settles when the signal is aborted, by throwing its reason. */
export async function aborted(signal: AbortSignal): Promise<never> {
  if (!signal.aborted) await once(signal, 'abort')
  throw signal.reason
}
