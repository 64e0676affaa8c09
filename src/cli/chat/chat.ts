import { createInterface } from 'node:readline/promises'
import { text } from 'node:stream/consumers'
import type { Chat, ChatMessage } from '../../core/chat.ts'
import { didYouMean } from '../../lib/near.ts'
import type { Gateway } from '../../runtime/gateway.ts'
import { type ExitCode, isInteractive, type Shell, UsageError } from '../kit.ts'
import type { CommonOptions } from '../load.ts'
import { openBriefly } from '../open.ts'
import { answerOnce, type ChatPreferences } from './answer.ts'
import { converse } from './conversation.ts'
import { type AskPerson, personAt } from './person.ts'

export interface ChatCommandOptions extends CommonOptions {
  readonly model?: string
  readonly mode?: 'staged' | 'agent'
  readonly agent?: string
  readonly system?: string
  /** False with --no-tools. */
  readonly tools: boolean
  readonly only?: readonly string[]
  /** With --json: events as they come instead of one document. */
  readonly stream?: boolean
  readonly wait: number
}

/** Answers a message with the help of the tools, or talks with whoever sits at the terminal. */
export async function chat(shell: Shell, words: readonly string[], options: ChatCommandOptions): Promise<ExitCode> {
  const message = await given(shell, words, options)
  await using gateway = await openBriefly(shell, options)
  // Await here: the gateway is closed on return.
  return await talk(shell, gateway, message, options)
}

/** The same with a gateway that is open; without a message it is a conversation. */
export async function talk(
  shell: Shell,
  gateway: Pick<Gateway, 'localAs'> & { readonly chat?: Chat | undefined },
  message: string | undefined,
  options: ChatCommandOptions,
): Promise<ExitCode> {
  const chat = chosen(gateway.chat, options.model)
  const caller = gateway.localAs(options.agent)
  const wish = wishOf(options)
  const system: ChatMessage[] = options.system === undefined ? [] : [{ role: 'system', content: options.system }]
  const begin = (question: AskPerson | undefined) => ({ chat, wish, person: personAt(caller, question) })
  if (message === undefined) return converse(shell, begin, system)
  const form = options.json ? (options.stream ? 'events' : 'document') : 'text'
  const asking = begin(isInteractive(shell) ? questionAt(shell) : undefined)
  return answerOnce(shell, asking, [...system, { role: 'user', content: message }], form)
}

/** The words of the command line; `-` among them stands for standard input, and so does nothing at all in a pipe. */
async function given(
  shell: Shell,
  words: readonly string[],
  { json }: ChatCommandOptions,
): Promise<string | undefined> {
  if (words.length === 0 && isInteractive(shell)) {
    if (json) throw new UsageError('With --json a message is needed.', 'Write it behind the command, or pipe it in.')
    return undefined
  }
  const fromInput = words.length === 0 || words.includes('-')
  const input = fromInput ? (await text(shell.stdin)).trim() : ''
  const message = words.length === 0 ? input : words.map((word) => (word === '-' ? `\n${input}` : word)).join(' ')
  if (message.trim() === '') throw new UsageError('There is no message.', 'Write it behind the command, or pipe it in.')
  return message.trim()
}

function chosen(chat: Chat | undefined, model: string | undefined): Chat {
  const known = chat?.models() ?? []
  if (!chat || known.length === 0) {
    throw new UsageError(
      'No model is configured.',
      'Add one to models in the configuration, and name it in chat.model.',
    )
  }
  if (model === undefined || known.includes(model)) return chat
  throw new UsageError(`There is no model "${model}"${didYouMean(model, known)}`, `There is ${known.join(', ')}.`)
}

const wishOf = ({ model, mode, tools, only }: ChatCommandOptions): ChatPreferences => ({
  ...(model !== undefined && { model }),
  ...(mode !== undefined && { mode }),
  ...(only !== undefined && { only }),
  ...(!tools && { toolChoice: 'none' as const }),
})

/** For one question there is one reader: between questions the input is left alone. */
const questionAt =
  ({ stdin, stderr }: Shell): AskPerson =>
  async (question, signal) => {
    using lines = createInterface({ input: stdin, output: stderr })
    return await lines.question(question, { signal })
  }
