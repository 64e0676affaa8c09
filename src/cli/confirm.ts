import { createInterface } from 'node:readline/promises'
import type { Shell } from './shell.ts'

/** Whether a person sits at both ends. */
export const isInteractive = ({ stdin, stderr }: Shell): boolean =>
  (stdin as { isTTY?: boolean }).isTTY === true && stderr.isTTY === true

/** Asks a person for a yes; everything else is a no, and so is leaving. */
export async function confirm(shell: Shell, question: string): Promise<boolean> {
  const lines = createInterface({ input: shell.stdin, output: shell.stderr })
  try {
    const answer = await lines.question(`${question} [y/N] `, { signal: shell.interrupted })
    return /^\s*y(es)?\s*$/i.test(answer)
  } catch {
    return false
  } finally {
    lines.close()
  }
}
