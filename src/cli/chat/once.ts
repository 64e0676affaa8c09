import type { ChatMessage } from '../../core/chat.ts'
import { type ExitCode, exit } from '../exit.ts'
import { createOutput } from '../output.ts'
import type { Shell } from '../shell.ts'
import { createActivity } from './activity.ts'
import { type Asking, answerTo } from './answer.ts'
import { createTyping } from './typing.ts'

/** Answers one message: as text while it comes, as one JSON document, or as events, one a line. */
export async function answerOnce(
  shell: Shell,
  asking: Asking,
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

/** Prints an answer while it comes; what of it was printed is kept even where it is cancelled. */
export async function printAnswer(
  shell: Pick<Shell, 'stdout' | 'stderr'>,
  asking: Asking,
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
