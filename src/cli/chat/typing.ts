import type { Stream } from '../shell.ts'
import { printable } from '../width.ts'

/** An answer on its way to stdout, piece by piece. */
export interface Typing {
  write(text: string): void
  /** Ends a line that was begun, so that something else can be said. */
  breakLine(): void
}

/** Half of a character, whose other half is in the next piece. */
const half = /[\ud800-\udbff]$/

/** A terminal gets what it can show and nothing that could lead it astray; a pipe gets every byte. */
export function createTyping(stdout: Stream): Typing {
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
