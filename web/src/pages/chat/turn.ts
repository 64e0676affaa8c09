import type { ChatStageName, ChatStreamEvent } from '../../../../src/serve/admin/contract.ts'

/** One question from the user, and the answer to it. */
export interface Turn {
  readonly question: string
  /** The chat's ID in the audit log. Known once the answer starts. */
  readonly id: string | undefined
  readonly stage: ChatStageName | undefined
  readonly calls: readonly ToolRun[]
  readonly thinking: string
  readonly text: string
  readonly state: 'running' | 'answered' | 'stopped' | 'failed'
  readonly notes: readonly string[]
  readonly error: { readonly code: string; readonly message: string } | undefined
  readonly tokens: number | undefined
}

export interface ToolRun {
  readonly call: string
  readonly name: string
  readonly server: string
  readonly arguments: unknown
  readonly state: 'running' | 'answered' | 'tool_error'
  readonly ms: number | undefined
  readonly text: string
}

export const newTurn = (question: string): Turn => ({
  ...{ question, id: undefined, stage: undefined, calls: [], thinking: '', text: '' },
  ...{ state: 'running', notes: [], error: undefined, tokens: undefined },
})

/** Applies one event from the response stream to a turn. */
export function applyEvent(turn: Turn, event: ChatStreamEvent): Turn {
  switch (event.kind) {
    case 'start':
      return { ...turn, id: event.id }
    case 'stage':
      return { ...turn, stage: event.stage }
    case 'call': {
      const { call, name, server, arguments: given } = event
      const run: ToolRun = { call, name, server, arguments: given, state: 'running', ms: undefined, text: '' }
      return { ...turn, calls: [...turn.calls, run] }
    }
    case 'result': {
      const { isError, durationMs: ms, text } = event
      const ended = { state: isError ? 'tool_error' : 'answered', ms, text } as const
      return { ...turn, calls: turn.calls.map((run) => (run.call === event.call ? { ...run, ...ended } : run)) }
    }
    case 'text':
      return { ...turn, text: turn.text + event.text }
    case 'thinking':
      return { ...turn, thinking: turn.thinking + event.text }
    case 'end': {
      const { notes, usage } = event
      return { ...turn, state: 'answered', notes, tokens: usage.promptTokens + usage.completionTokens }
    }
    case 'error':
      return failedTurn(turn, event)
  }
}

export const stoppedTurn = (turn: Turn): Turn => (turn.state === 'running' ? { ...turn, state: 'stopped' } : turn)

export const failedTurn = (
  turn: Turn,
  { code, message }: { readonly code: string; readonly message: string },
): Turn => ({
  ...turn,
  state: 'failed',
  error: { code, message },
})

/** The messages to send with the next request, omitting turns that failed or have no answer. */
export const historyOf = (turns: readonly Turn[]) =>
  turns.flatMap(({ question, text, state }) =>
    text === '' || state === 'failed'
      ? []
      : [
          { role: 'user' as const, content: question },
          { role: 'assistant' as const, content: text },
        ],
  )

export const stageNames: Readonly<Record<ChatStageName, string>> = {
  discover: 'Searching for tools',
  select: 'Choosing tools',
  call: 'Preparing calls',
  execute: 'Running tools',
  interpret: 'Reading results',
  answer: 'Writing the answer',
}
