import type { ChatEvent, ChatStage } from '../../core/chat.ts'
import { createOutput } from '../output.ts'
import { createProgress } from '../progress.ts'
import type { Shell } from '../shell.ts'
import { cut, oneLine } from '../width.ts'

/** What happens beside the answer, told on stderr: which tools ran, and how. */
export interface Activity extends Disposable {
  tell(event: ChatEvent): void
  /** Takes away what is only shown while something is waited for. */
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

export function createActivity(shell: Pick<Shell, 'stdout' | 'stderr'>): Activity {
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
        const words = [...(event.reason === 'length' ? ['The answer was cut off at its longest.'] : []), ...event.notes]
        for (const word of words) note(paintNote('dim', `note: ${oneLine(word)}`))
      } else if (event.kind === 'text') clear()
    },
    [Symbol.dispose]: clear,
  }
}
