import { randomUUID } from 'node:crypto'
import { type Caller, type Peer, quietPeer } from '../../core/call.ts'
import type { Chat, ChatEnd, ChatEvent, ChatMessage, ChatRequest, ChatStage } from '../../core/chat.ts'
import { ToolwayError } from '../../core/errors.ts'
import { Json } from '../../json/json.ts'
import { createOutput, createProgress, isYes, type Shell, type Stream } from '../kit.ts'
import { cut, oneLine, printable } from '../table.ts'

/** Settings for a whole conversation. */
export type ChatPreferences = Pick<ChatRequest, 'model' | 'mode' | 'toolChoice' | 'only'>

export interface ChatContext {
  readonly chat: Chat
  readonly person: ReturnType<typeof personAt>
  readonly preferences: ChatPreferences
}

/** Requests an answer and passes each event on as it arrives. */
async function requestAnswer(
  { chat, person, preferences }: ChatContext,
  messages: readonly ChatMessage[],
  signal: AbortSignal,
  onEvent: (event: ChatEvent, id: string) => void,
) {
  // The id links the calls made for one answer in the audit log and in traces.
  const id = `chat-${randomUUID().slice(19)}`
  let content = ''
  let end: ChatEnd | undefined
  const calls = new Map<string, object>()
  for await (const event of chat.answer({ ...preferences, ...person, id, messages, signal, stream: true })) {
    if (event.kind === 'text') content += event.text
    else if (event.kind === 'end') end = event
    else if (event.kind === 'call' || event.kind === 'result') {
      const { kind, ...facts } = event
      calls.set(event.call, { ...calls.get(event.call), ...facts })
    }
    onEvent(event, id)
  }
  signal.throwIfAborted()
  return { id, content, end, calls: [...calls.values()] }
}

/** Answers one message: as streamed text, as one JSON document, or as one JSON event per line. */
export async function answerOnce(
  shell: Shell,
  context: ChatContext,
  messages: readonly ChatMessage[],
  form: 'text' | 'document' | 'events',
): Promise<void> {
  const { interrupted } = shell
  if (form === 'text') {
    await printAnswer(shell, context, messages, interrupted)
    return
  }
  const { id, content, end, calls } = await requestAnswer(context, messages, interrupted, (event, id) => {
    if (form === 'events') shell.stdout.write(`${JSON.stringify({ id, ...event })}\n`)
  })
  if (form === 'document') {
    const { kind, handed, ...rest } = end ?? {}
    createOutput(shell, true).value({ id, content, ...rest, calls })
  }
}

export async function printAnswer(
  shell: Pick<Shell, 'stdout' | 'stderr' | 'env'>,
  context: ChatContext,
  messages: readonly ChatMessage[],
  signal: AbortSignal,
): Promise<string> {
  const typing = createTyping(shell.stdout)
  using activity = createActivity(shell)
  try {
    const { content } = await requestAnswer(context, messages, signal, (event) => {
      if (event.kind !== 'text') typing.breakLine()
      activity.show(event)
      if (event.kind === 'text') typing.write(event.text)
    })
    return content
  } finally {
    typing.breakLine()
  }
}

/** Matches a trailing high surrogate, whose low surrogate is in the next piece. */
const half = /[\ud800-\udbff]$/

/** Writes an answer piece by piece. Control characters are removed on a terminal; a pipe gets the text unchanged. */
function createTyping(stdout: Stream) {
  const clean = stdout.isTTY ? printable : (text: string) => text
  let kept = ''
  let midLine = false
  return {
    write(piece: string) {
      const text = kept + piece
      kept = half.exec(text)?.[0] ?? ''
      const shown = clean(kept === '' ? text : text.slice(0, -1))
      if (shown === '') return
      stdout.write(shown)
      midLine = !shown.endsWith('\n')
    },
    breakLine() {
      if (midLine) stdout.write('\n')
      midLine = false
    },
  }
}

const stages: Readonly<Record<ChatStage, string>> = {
  discover: 'Looking for tools',
  select: 'Choosing tools',
  call: 'Preparing calls',
  execute: 'Running tools',
  interpret: 'Reading results',
  answer: 'Writing',
}

const maxCallWidth = 200

/** Prints tool calls and their results on stderr while the answer is being produced. */
function createActivity(shell: Pick<Shell, 'stdout' | 'stderr' | 'env'>) {
  const { note, paintNote } = createOutput(shell)
  const progress = createProgress(shell)
  const names = new Map<string, string>()
  let waiting = false
  const wait = (text: string) => {
    waiting = true
    progress.show(`${text} …`)
  }
  const clear = () => {
    if (waiting) progress[Symbol.dispose]()
    waiting = false
  }

  return {
    show(event: ChatEvent) {
      if (event.kind === 'stage') wait(stages[event.stage])
      else if (event.kind === 'call') {
        const called = `${event.name} ${JSON.stringify(event.arguments)}`
        names.set(event.call, called)
        wait(oneLine(called))
      } else if (event.kind === 'result') {
        clear()
        const { isError, durationMs, call, text } = event
        const sign = isError ? paintNote('red', '✗') : paintNote('green', '✓')
        const name = cut(oneLine(names.get(call) ?? call), maxCallWidth)
        note(`${sign} ${name} ${paintNote('dim', `${Math.round(durationMs)} ms`)}${isError ? ` ${oneLine(text)}` : ''}`)
      } else if (event.kind === 'end') {
        clear()
        const cutOff = event.reason === 'length' ? ['The answer was cut off at the length limit.'] : []
        for (const text of [...cutOff, ...event.notes]) note(paintNote('dim', `note: ${oneLine(text)}`))
      } else if (event.kind === 'text') clear()
    },
    [Symbol.dispose]: clear,
  }
}

/** Asks the person at the terminal. Rejects when the signal is aborted. */
export type AskPerson = (text: string, signal: AbortSignal) => Promise<string>

interface Elicitation {
  readonly message?: unknown
  readonly requestedSchema?: { readonly properties?: Readonly<Record<string, { readonly type?: unknown }>> }
}

/** The person at the terminal, who can answer only yes-or-no questions. Without `question`, approval is refused. */
export function personAt(caller: Caller, question: AskPerson | undefined): { caller: Caller; peer: Peer } {
  // Ask one question at a time, even if several tools are running in parallel.
  let turn: Promise<unknown> = Promise.resolve()
  const inTurn = <T>(work: () => Promise<T>): Promise<T> => {
    const mine = turn.then(work)
    turn = mine.catch(() => {})
    return mine
  }

  const elicit = async (question: AskPerson, { message, requestedSchema }: Elicitation, signal: AbortSignal) => {
    const fields = Object.entries(requestedSchema?.properties ?? {})
    const [name, schema] = fields[0] ?? []
    if (name === undefined || fields.length > 1 || schema?.type !== 'boolean') return { action: 'decline' }
    signal.throwIfAborted()
    const answer = await question(`${oneLine(String(message))} [y/N] `, signal)
    return isYes(answer) ? { action: 'accept', content: { [name]: true } } : { action: 'decline' }
  }

  return {
    caller: question ? { ...caller, capabilities: { ...caller.capabilities, elicitation: {} } } : caller,
    peer: quietPeer(async (method, params, signal) => {
      if (!question || method !== 'elicitation/create') throw cannotAnswer(method)
      return Json.of(await inTurn(() => elicit(question, params.value as Elicitation, signal)))
    }),
  }
}

const cannotAnswer = (method: string) =>
  new ToolwayError('INVALID_ARGUMENTS', `The command line cannot answer ${method} here; use a client that can.`)
