import { createInterface, type Interface } from 'node:readline/promises'
import type { ChatMessage } from '../../core/chat.ts'
import { ToolwayError } from '../../core/errors.ts'
import { report } from '../failure.ts'
import { commandName, createOutput, type ExitCode, exit, type Shell } from '../kit.ts'
import { type ChatContext, printAnswer } from './answer.ts'
import type { AskPerson } from './person.ts'

const help = 'Ctrl+C stops an answer, or quits. /new starts over, /exit quits.'

/** Runs a conversation at the terminal; earlier messages are part of each request. */
export async function converse(
  shell: Shell,
  begin: (question: AskPerson) => ChatContext,
  system: readonly ChatMessage[],
): Promise<ExitCode> {
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
    if (isOver(lines)) break
    lines.prompt()
  }
  stderr.write('\n')
  interrupted.throwIfAborted()
  return exit.ok

  /** Returns the conversation with the answer appended or, if answering failed, without the last message. */
  async function answer(messages: ChatMessage[]): Promise<ChatMessage[]> {
    answering = new AbortController()
    const signal = AbortSignal.any([interrupted, answering.signal])
    try {
      const content = await printAnswer(shell, context, messages, signal)
      return [...messages, { role: 'assistant', content }]
    } catch (thrown) {
      const place = { command: commandName(shell.env), cwd: shell.cwd, debug: false }
      if (answering.signal.aborted) note(paintNote('dim', 'Stopped.'))
      else if (!interrupted.aborted) report(thrown, createOutput(shell), place)
      return messages.slice(0, -1)
    } finally {
      answering = undefined
    }
  }
}

const isOver = (lines: Interface): boolean => (lines as Interface & { closed?: boolean }).closed === true
