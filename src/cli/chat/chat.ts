import { randomUUID } from 'node:crypto'
import { createInterface, type Interface } from 'node:readline/promises'
import { text } from 'node:stream/consumers'
import { type Caller, type Peer, quietPeer } from '../../core/call.ts'
import type { Chat, ChatEnd, ChatEvent, ChatMessage, ChatRequest, ChatStage } from '../../core/chat.ts'
import { ToolwayError } from '../../core/errors.ts'
import { Json } from '../../json/json.ts'
import { didYouMean } from '../../lib/similar-text.ts'
import type { Gateway } from '../../runtime/gateway-api.ts'
import type { OptionsOf } from '../command-table.ts'
import { report } from '../failure.ts'
import { createOutput, createProgress, isInteractive, isYes, type Shell, type Stream, UsageError } from '../kit.ts'
import { openBriefly } from '../open.ts'
import { cut, oneLine, printable } from '../table.ts'

type ChatCommandOptions = OptionsOf<'chat'>

/** Answers one message, or starts a conversation at the terminal. */
export async function chat(shell: Shell, words: readonly string[], options: ChatCommandOptions): Promise<void> {
  const message = await readMessage(shell, words, options)
  await using gateway = await openBriefly(shell, options)
  // Await here, because the gateway is closed when this function returns.
  return await talk(shell, gateway, message, options)
}

export async function talk(
  shell: Shell,
  gateway: Pick<Gateway, 'localAs'> & { readonly chat?: Chat | undefined },
  message: string | undefined,
  options: ChatCommandOptions,
): Promise<void> {
  const { model, mode, only, tools, system } = options
  const chat = requireModel(gateway.chat, model)
  const caller = gateway.localAs(options.agent)
  const preferences: ChatPreferences = { model, mode, only, toolChoice: tools ? undefined : 'none' }
  const before: ChatMessage[] = system === undefined ? [] : [{ role: 'system', content: system }]
  const begin = (question?: AskPerson) => ({ chat, preferences, person: personAt(caller, question) })
  if (message === undefined) return converse(shell, begin, before)
  const form = options.json ? (options.stream ? 'events' : 'document') : 'text'
  const context = begin(isInteractive(shell) ? questionAt(shell) : undefined)
  return answerOnce(shell, context, [...before, { role: 'user', content: message }], form)
}

const howToPass = 'Write it after the command, or pipe it in.'

/** The message: `words`, with `-` replaced by stdin. Without words, all of stdin; undefined if that is a terminal. */
async function readMessage(
  shell: Shell,
  words: readonly string[],
  { json }: ChatCommandOptions,
): Promise<string | undefined> {
  if (words.length === 0 && isInteractive(shell)) {
    if (json) throw new UsageError('--json needs a message.', howToPass)
    return undefined
  }
  const fromInput = words.length === 0 || words.includes('-')
  const input = fromInput ? (await text(shell.stdin)).trim() : ''
  const message = words.length === 0 ? input : words.map((word) => (word === '-' ? `\n${input}` : word)).join(' ')
  if (message.trim() === '') throw new UsageError('The message is empty.', howToPass)
  return message.trim()
}

function requireModel(chat: Chat | undefined, model: string | undefined): Chat {
  const known = chat?.models() ?? []
  if (!chat || known.length === 0) {
    throw new UsageError('No model is configured.', 'Add one to `models`, and name it in `chat.model`.')
  }
  if (model === undefined || known.includes(model)) return chat
  throw new UsageError(`There is no model "${model}"${didYouMean(model, known)}`, `Models: ${known.join(', ')}.`)
}

/** Asks a question. stdin is open only until the question is answered. */
const questionAt =
  ({ stdin, stderr }: Shell): AskPerson =>
  async (question, signal) => {
    using lines = createInterface({ input: stdin, output: stderr })
    return await lines.question(question, { signal })
  }

const help = 'Ctrl+C stops an answer, or quits. /new starts over, /exit quits.'

/** Runs a conversation at the terminal; earlier messages are part of each request. */
async function converse(
  shell: Shell,
  begin: (question: AskPerson) => ChatContext,
  system: readonly ChatMessage[],
): Promise<void> {
  const { stdin, stderr, interrupted } = shell
  const { note, paintNote } = createOutput(shell)
  using lines = createInterface({ input: stdin, output: stderr, terminal: true, signal: interrupted })
  lines.setPrompt(`${paintNote('bold', '>')} `)
  let answering: AbortController | undefined
  // The terminal is in raw mode: Ctrl+C arrives as a key and does not end the process.
  lines.on('SIGINT', () => {
    if (answering) answering.abort(new ToolwayError('CANCELLED', 'Stopped.'))
    else lines.close()
  })
  // Keep answers to questions out of the input history.
  let questioned = false
  lines.on('history', (entries: string[]) => {
    if (questioned) entries.shift()
  })
  const context = begin(async (text, signal) => {
    questioned = true
    try {
      return await lines.question(text, { signal })
    } finally {
      questioned = false
    }
  })
  let messages: readonly ChatMessage[] = system
  note(paintNote('dim', help))
  lines.prompt()
  for await (const line of lines) {
    const content = line.trim()
    if (content === '/exit') break
    if (content === '/new') {
      messages = system
      note('Started over.')
    } else if (content !== '') messages = await answer([...messages, { role: 'user', content }])
    if ((lines as Interface & { closed?: boolean }).closed) break
    lines.prompt()
  }
  stderr.write('\n')
  interrupted.throwIfAborted()
  return

  /** Returns the conversation with the answer appended or, if answering failed, without the last message. */
  async function answer(messages: ChatMessage[]): Promise<ChatMessage[]> {
    answering = new AbortController()
    const signal = AbortSignal.any([interrupted, answering.signal])
    try {
      const content = await printAnswer(shell, context, messages, signal)
      return [...messages, { role: 'assistant', content }]
    } catch (thrown) {
      const place = { command: shell.command, cwd: shell.cwd, debug: false }
      if (answering.signal.aborted) note(paintNote('dim', 'Stopped.'))
      else if (!interrupted.aborted) report(thrown, createOutput(shell), place)
      return messages.slice(0, -1)
    } finally {
      answering = undefined
    }
  }
}

/** Settings for a whole conversation. */
type ChatPreferences = Pick<ChatRequest, 'model' | 'mode' | 'toolChoice' | 'only'>

interface ChatContext {
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
async function answerOnce(
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

async function printAnswer(
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
  const clear = () => progress[Symbol.dispose]()

  return {
    show(event: ChatEvent) {
      if (event.kind === 'stage') progress.show(`${stages[event.stage]} …`)
      else if (event.kind === 'call') {
        const called = `${event.name} ${JSON.stringify(event.arguments)}`
        names.set(event.call, called)
        progress.show(`${oneLine(called)} …`)
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
type AskPerson = (text: string, signal: AbortSignal) => Promise<string>

interface Elicitation {
  readonly message?: unknown
  readonly requestedSchema?: { readonly properties?: Readonly<Record<string, { readonly type?: unknown }>> }
}

/** The person at the terminal, who can answer only yes-or-no questions. Without `question`, approval is refused. */
function personAt(caller: Caller, question: AskPerson | undefined): { caller: Caller; peer: Peer } {
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
