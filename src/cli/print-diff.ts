import { createRedactor } from '../audit/redact/redactor.ts'
import { diff } from '../clients/diff.ts'
import type { Definition } from '../config/import/read-servers.ts'
import { secretTexts } from './find-secrets.ts'
import type { Output } from './output.ts'
import { printable } from './width.ts'

/** Names whose values nobody should read over somebody's shoulder. */
const keys = ['*token*', '*secret*', '*password*', '*authorization*', '*api_key*', '*cookie*', '*credential*']

/** Shows what would change in a file, without the secrets of the servers in it. */
export function printDiff(
  before: string,
  after: string,
  servers: readonly Definition[],
  { print, paint }: Pick<Output, 'print' | 'paint'>,
): void {
  const redactor = createRedactor({ secrets: servers.flatMap(secretTexts), keys })
  const shown = (line: string): string => {
    // What only refers to a secret may be seen: that is how somebody checks it.
    const rest = line.replace(/(?:Bearer )?(?:\$\{[^{}]*\}|\{(?:env|file):[^{}]*\})/g, '')
    return printable(rest !== line && redactor.text(rest) === rest ? line : redactor.text(line))
  }
  for (const { kind, text } of diff(before, after)) {
    if (kind === 'gap') print(paint('dim', '  …'))
    else if (kind === 'same') print(paint('dim', `    ${shown(text)}`))
    else print(kind === 'added' ? paint('green', `  + ${shown(text)}`) : paint('red', `  - ${shown(text)}`))
  }
}
