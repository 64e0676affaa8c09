import { createInterface } from 'node:readline'
import { ToolwayError } from '../../core/errors.ts'
import { isInteractive } from '../confirm.ts'
import type { Output } from '../output.ts'
import type { Shell } from '../shell.ts'

/** Somebody who brings by hand what their browser, on another machine, could not bring itself. */
export interface Pasting extends Disposable {
  /** Aborted where they leave instead: a terminal that is read by line sends no signal. */
  readonly left: AbortSignal
  /** Takes lines from now on; each that is an answer goes where the browser would have gone, and is checked there. */
  begin(signInUrl: string): void
}

export function createPasting(shell: Shell, output: Output): Pasting {
  const leaving = new AbortController()
  const done = new AbortController()
  return {
    left: leaving.signal,
    begin(signInUrl) {
      const redirect = new URL(new URL(signInUrl).searchParams.get('redirect_uri') ?? '')
      const terminal = isInteractive(shell)
      const lines = createInterface({
        input: shell.stdin,
        ...(terminal && { output: shell.stderr }),
        terminal,
        signal: done.signal,
      })
      lines.on('SIGINT', () => leaving.abort(new ToolwayError('CANCELLED', 'Interrupted.')))
      lines.on('line', async (line) => {
        if (line.trim() !== '' && !(await isTaken(line, redirect))) {
          output.note(`That is not what is waited for. Paste the whole address, which begins with ${redirect.href}?`)
        }
      })
    },
    [Symbol.dispose]: () => done.abort(),
  }
}

/** Whether the one who waits there knows what to do with it. */
async function isTaken(line: string, redirect: URL): Promise<boolean> {
  const { search } = URL.canParse(line.trim()) ? new URL(line.trim()) : { search: '' }
  if (search === '') return false
  const place = new URL(redirect)
  place.search = search
  const answer = await fetch(place).catch(() => undefined)
  await answer?.body?.cancel()
  return answer !== undefined && answer.status !== 404
}
