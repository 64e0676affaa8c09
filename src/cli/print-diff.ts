import { secretTexts } from '../admin/config/find-secrets.ts'
import { createRedactor } from '../audit/redact/redactor.ts'
import { diffOf, type ShownLine } from '../catalog/pins/definition-diff.ts'
import type { ServerDefinition } from '../config/import/read-servers.ts'
import type { Output } from './kit.ts'
import { printable } from './table.ts'

/** Names of settings whose values are secret. */
const keys = ['*token*', '*secret*', '*password*', '*authorization*', '*api_key*', '*cookie*', '*credential*']

const colours = { ' ': 'dim', '…': 'dim', '+': 'green', '-': 'red' } as const

/** Shows what would change in a file, with the servers' secrets redacted. */
export function printDiff(
  file: string,
  before: string,
  after: string,
  servers: Iterable<ServerDefinition>,
  { print, paint }: Output,
): void {
  const redactor = createRedactor({ secrets: [...servers].flatMap(secretTexts), keys })
  const shown = (line: string): string => {
    // Show a line that contains only a reference to a secret, so that the user can check the reference, and the values
    // of auth.token that are not secret.
    const rest = line
      .replace(/(?:Bearer )?(?:\$\{[^{}]*\}|\{(?:env|file):[^{}]*\})/g, '')
      .replace(/\btoken"?\s*[:=]\s*("?)(?:generated|none)\1(?=\s*,?\s*$|\s*\}|\s+#)/, '')
    return rest !== line && redactor.text(rest) === rest ? line : redactor.text(line)
  }
  const lines = diffOf(before, after).map(([mark, text]) => [mark, shown(text)] as ShownLine)
  printLines(file, lines, { print, paint })
}

/** Prints changed lines, which must not contain secrets. */
export function printLines(
  file: string,
  lines: readonly ShownLine[],
  { print, paint }: Pick<Output, 'print' | 'paint'>,
): void {
  print(paint('bold', file))
  for (const [mark, text] of lines) {
    print(paint(colours[mark], mark === '…' ? '  …' : `  ${mark} ${printable(text)}`))
  }
}
