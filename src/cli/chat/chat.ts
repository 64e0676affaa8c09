import { createInterface, type Interface } from 'node:readline/promises'
import { text } from 'node:stream/consumers'
import type { Chat, ChatMessage } from '../../core/chat.ts'
import { ToolwayError } from '../../core/errors.ts'
import { didYouMean } from '../../lib/similar-text.ts'
import type { Gateway } from '../../runtime/gateway-api.ts'
import type { OptionsOf } from '../command-table.ts'
import { report } from '../failure.ts'
import { createOutput, isInteractive, type Shell, UsageError } from '../kit.ts'
import { openBriefly } from '../open.ts'
import { type AskPerson, answerOnce, type ChatContext, type ChatPreferences, personAt, printAnswer } from './answer.ts'

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
