import { randomUUID } from 'node:crypto'
import type { Chat, ChatEnd, ChatEvent, ChatMessage, ChatRequest, ChatStage } from '../../core/chat.ts'
import { createOutput, createProgress, type ExitCode, exit, type Shell, type Stream } from '../kit.ts'
import { cut, oneLine, printable } from '../table.ts'
import type { Person } from './person.ts'

/** Settings of a whole conversation. */
export type ChatPreferences = Pick<ChatRequest, 'model' | 'mode' | 'toolChoice' | 'only'>

/** An answer and the calls that led to it. */
interface CompletedAnswer {
  /** Joins its calls in audit and traces. */
  readonly id: string
  readonly content: string
  readonly end: ChatEnd | undefined
  readonly calls: readonly object[]
}

export interface ChatContext {
  readonly chat: Chat
  readonly person: Person
  readonly wish: ChatPreferences
}

/** Requests an answer and passes each event on as it arrives. */
async function answerTo(
  { chat, person, wish }: ChatContext,
  messages: readonly ChatMessage[],
  signal: AbortSignal,
  tell: (event: ChatEvent, id: string) => void,
): Promise<CompletedAnswer> {
  const id = `chat-${randomUUID().slice(19)}`
  let content = ''
  let end: ChatEnd | undefined
  const calls = new Map<string, object>()
  for await (const event of chat.answer({ ...wish, ...person, id, messages, signal, stream: true })) {
    if (event.kind === 'text') content += event.text
    else if (event.kind === 'end') end = event
    else if (event.kind === 'call' || event.kind === 'result') {
      const { kind, ...told } = event
      calls.set(event.call, { ...calls.get(event.call), ...told })
    }
    tell(event, id)
  }
  signal.throwIfAborted()
  return { id, content, end, calls: [...calls.values()] }
}

/** Answers one message: as streamed text, as one JSON document, or as events, one per line. */
export async function answerOnce(
  shell: Shell,
  asking: ChatContext,
  messages: readonly ChatMessage[],
  form: 'text' | 'document' | 'events',
): Promise<ExitCode> {
  const { interrupted } = shell
  if (form === 'text') {
    await printAnswer(shell, asking, messages, interrupted)
    return exit.ok
  }
  const line = (value: unknown) => shell.stdout.write(`${JSON.stringify(value)}\n`)
  const { id, content, end, calls } = await answerTo(asking, messages, interrupted, (event, id) => {
    if (form === 'events') line({ id, ...event })
  })
  if (form === 'document') {
    const { kind, handed, ...rest } = end ?? {}
    createOutput(shell, true).value({ id, content, ...rest, calls })
  }
  return exit.ok
}

/** Streams an answer to stdout. */
export async function printAnswer(
  shell: Pick<Shell, 'stdout' | 'stderr'>,
  asking: ChatContext,
  messages: readonly ChatMessage[],
  signal: AbortSignal,
): Promise<string> {
  const typing = createTyping(shell.stdout)
  using activity = createActivity(shell)
  try {
    const { content } = await answerTo(asking, messages, signal, (event) => {
      if (event.kind !== 'text') typing.breakLine()
      activity.tell(event)
      if (event.kind === 'text') typing.write(event.text)
    })
    return content
  } finally {
    typing.breakLine()
  }
}

/** Writes a streamed answer to stdout. */
interface Typing {
  write(text: string): void
  /** Ends an unfinished line. */
  breakLine(): void
}

/** A high surrogate whose low surrogate is in the next piece. */
const half = /[\ud800-\udbff]$/

/** Control characters are removed for a terminal; a pipe gets every byte. */
function createTyping(stdout: Stream): Typing {
  const clean = stdout.isTTY ? printable : (text: string) => text
  let kept = ''
  let midLine = false
  return {
    write(piece) {
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

/** Prints tool calls and their results on stderr while the answer is produced. */
interface Activity extends Disposable {
  tell(event: ChatEvent): void
  /** Removes the progress line. */
  clear(): void
}

const stages: Readonly<Record<ChatStage, string>> = {
  discover: 'Looking for tools',
  select: 'Choosing tools',
  call: 'Preparing calls',
  execute: 'Running tools',
  interpret: 'Reading results',
  answer: 'Writing',
}

const longest = 200

function createActivity(shell: Pick<Shell, 'stdout' | 'stderr'>): Activity {
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
    clear,
    tell(event) {
      if (event.kind === 'stage') wait(stages[event.stage])
      else if (event.kind === 'call') {
        const called = `${event.name} ${JSON.stringify(event.arguments)}`
        names.set(event.call, called)
        wait(oneLine(called))
      } else if (event.kind === 'result') {
        clear()
        const { isError, durationMs, call, text } = event
        const sign = isError ? paintNote('red', '✗') : paintNote('green', '✓')
        const told = cut(oneLine(names.get(call) ?? call), longest)
        note(`${sign} ${told} ${paintNote('dim', `${Math.round(durationMs)} ms`)}${isError ? ` ${oneLine(text)}` : ''}`)
      } else if (event.kind === 'end') {
        clear()
        const words = [
          ...(event.reason === 'length' ? ['The answer was cut off at the length limit.'] : []),
          ...event.notes,
        ]
        for (const word of words) note(paintNote('dim', `note: ${oneLine(word)}`))
      } else if (event.kind === 'text') clear()
    },
    [Symbol.dispose]: clear,
  }
}
