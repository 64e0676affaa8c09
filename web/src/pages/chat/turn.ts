import type { ChatStageName, ChatStreamEvent, ChatUsage } from '../../../../src/admin/contract.ts'
import type { RequestMessage } from '../../api/chat.ts'

/** An image that the user attached. */
export interface AttachedImage {
  readonly name: string
  /** A data URL; undefined in a conversation from an earlier visit, because images are not stored. */
  readonly url: string | undefined
}

/** One question from the user, and the answer to it. */
export interface Turn {
  readonly question: string
  readonly images: readonly AttachedImage[]
  /** The chat's ID in the audit log. Known once the answer starts. */
  readonly id: string | undefined
  readonly steps: readonly Step[]
  readonly calls: readonly ToolRun[]
  readonly thinking: string
  readonly text: string
  readonly state: 'running' | 'answered' | 'stopped' | 'failed'
  readonly notes: readonly string[]
  readonly error: { readonly code: string; readonly message: string } | undefined
  readonly tokens: number | undefined
  readonly durationMs: number | undefined
}

/** One stage of the answer. The duration and the tokens are known once the next stage has begun. */
export interface Step {
  readonly stage: ChatStageName
  readonly round: number
  readonly atMs: number | undefined
  readonly tokensBefore: number | undefined
  readonly ms: number | undefined
  readonly tokens: number | undefined
}

export interface ToolRun {
  readonly call: string
  /** The ID of the call in the call log. */
  readonly id: string | undefined
  readonly name: string
  readonly server: string
  readonly arguments: unknown
  readonly state: 'running' | 'answered' | 'tool_error'
  readonly ms: number | undefined
  readonly text: string
}

export const newTurn = (question: string, images: readonly AttachedImage[] = []): Turn => ({
  ...{ question, images, id: undefined, steps: [], calls: [], thinking: '', text: '' },
  ...{ state: 'running', notes: [], error: undefined, tokens: undefined, durationMs: undefined },
})

/** Applies one event from the response stream to a turn. */
export function applyEvent(turn: Turn, event: ChatStreamEvent): Turn {
  switch (event.kind) {
    case 'start':
      return { ...turn, id: event.id }
    case 'stage':
      return { ...turn, steps: [...endLastStep(turn.steps, event.atMs, event.usage), newStep(event)] }
    case 'call': {
      const { call, id, name, server, arguments: given } = event
      const run: ToolRun = { call, id, name, server, arguments: given, state: 'running', ms: undefined, text: '' }
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
      const { notes, usage, durationMs } = event
      const steps = endLastStep(turn.steps, durationMs, usage)
      return { ...turn, state: 'answered', notes, steps, tokens: totalOf(usage), durationMs }
    }
    case 'error':
      return failedTurn(turn, event)
  }
}

const totalOf = (usage: ChatUsage): number => usage.promptTokens + usage.completionTokens

const newStep = ({ stage, round, atMs, usage }: Extract<ChatStreamEvent, { kind: 'stage' }>): Step => ({
  ...{ stage, round, atMs, tokensBefore: usage && totalOf(usage) },
  ...{ ms: undefined, tokens: undefined },
})

/** Sets what the last step took, from the time and the tokens at its end. */
function endLastStep(steps: readonly Step[], atMs: number | undefined, usage: ChatUsage | undefined): readonly Step[] {
  const last = steps.at(-1)
  if (!last) return steps
  const ms = atMs === undefined || last.atMs === undefined ? undefined : atMs - last.atMs
  const tokens = usage === undefined || last.tokensBefore === undefined ? undefined : totalOf(usage) - last.tokensBefore
  return [...steps.slice(0, -1), { ...last, ms, tokens }]
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
export const historyOf = (turns: readonly Turn[]): readonly RequestMessage[] =>
  turns.flatMap(({ question, images, text, state }) =>
    text === '' || state === 'failed'
      ? []
      : [userMessage(question, images), { role: 'assistant' as const, content: text }],
  )

/** A message of the user. Images that are no longer there are mentioned, because the answer may refer to them. */
export function userMessage(question: string, images: readonly AttachedImage[]): RequestMessage {
  if (images.length === 0) return { role: 'user', content: question }
  const parts = images.map(({ name, url }) =>
    url === undefined
      ? { type: 'text' as const, text: `[image ${name}, no longer available]` }
      : { type: 'image_url' as const, image_url: { url } },
  )
  return { role: 'user', content: [...(question === '' ? [] : [{ type: 'text' as const, text: question }]), ...parts] }
}

/** Keeps the latest images, as many as one request may contain. */
export function withinImageLimits(messages: readonly RequestMessage[]): readonly RequestMessage[] {
  let count = 0
  let length = 0
  return messages
    .toReversed()
    .map((message) => {
      if (typeof message.content === 'string') return message
      const content = message.content.toReversed().map((part) => {
        if (part.type === 'text') return part
        length += part.image_url.url.length
        return ++count <= maxImages && length <= maxImagesLength
          ? part
          : { type: 'text' as const, text: '[image, no longer available]' }
      })
      return { ...message, content: content.toReversed() } as RequestMessage
    })
    .toReversed()
}

/** The gateway accepts eight images; the size stays below the default of `server.maxBody`. */
const maxImages = 8
const maxImagesLength = 3_000_000

export const stageNames: Readonly<Record<ChatStageName, string>> = {
  discover: 'Searching for tools',
  select: 'Choosing tools',
  call: 'Preparing calls',
  execute: 'Running tools',
  interpret: 'Reading results',
  answer: 'Writing the answer',
}
