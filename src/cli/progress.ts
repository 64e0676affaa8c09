import type { Shell } from './shell.ts'
import { cut, oneLine } from './width.ts'

/** One line on stderr that says what is being waited for; it vanishes when disposed of. */
export interface Progress extends Disposable {
  show(text: string): void
}

/** Progress for people only: without a terminal it shows nothing. */
export function createProgress({ stderr }: Pick<Shell, 'stderr'>): Progress {
  if (stderr.isTTY !== true) return { show() {}, [Symbol.dispose]() {} }
  let shown = ''
  return {
    show(text) {
      const line = cut(oneLine(text), (stderr.columns ?? 80) - 1)
      if (line !== shown) stderr.write('\r\x1b[2K' + line)
      shown = line
    },
    [Symbol.dispose]: () => stderr.write('\r\x1b[2K'),
  }
}
