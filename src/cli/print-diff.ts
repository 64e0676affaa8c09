import { createRedactor } from '../audit/redact/redactor.ts'
import type { ServerDefinition } from '../config/import/read-servers.ts'
import { secretTexts } from './find-secrets.ts'
import type { Output } from './kit.ts'
import { printable } from './table.ts'

/** Names whose values nobody should read over somebody's shoulder. */
const keys = ['*token*', '*secret*', '*password*', '*authorization*', '*api_key*', '*cookie*', '*credential*']

/** Shows what would change in a file, without the secrets of the servers in it. */
export function printDiff(
  before: string,
  after: string,
  servers: readonly ServerDefinition[],
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

/** A line of a difference. */
interface DiffLine {
  readonly kind: 'same' | 'removed' | 'added' | 'gap'
  readonly text: string
}

const around = 3

/** Lines that differ between two texts, with a few around them; a gap stands for more that are the same. */
export function diff(before: string, after: string): DiffLine[] {
  const [old, young] = [linesOf(before), linesOf(after)]
  const lines = compared(old, young)
  const near = lines.map((_, index) =>
    lines.slice(Math.max(0, index - around), index + around + 1).some(({ kind }) => kind !== 'same'),
  )
  return lines.flatMap((line, index): DiffLine[] => {
    if (near[index]) return [line]
    return near[index - 1] || index === 0 ? [{ kind: 'gap', text: '' }] : []
  })
}

const linesOf = (text: string): string[] => (text === '' ? [] : text.replace(/\r?\n$/, '').split(/\r?\n/))

/** What both begin and end with is set aside first: our changes are small and files may be large. */
function compared(old: readonly string[], young: readonly string[]): DiffLine[] {
  const shorter = Math.min(old.length, young.length)
  let head = 0
  while (head < shorter && old[head] === young[head]) head++
  let tail = 0
  while (tail < shorter - head && old.at(-1 - tail) === young.at(-1 - tail)) tail++
  const same = (text: string): DiffLine => ({ kind: 'same', text })
  return [
    ...old.slice(0, head).map(same),
    ...between(old.slice(head, old.length - tail), young.slice(head, young.length - tail)),
    ...old.slice(old.length - tail).map(same),
  ]
}

/** Beyond this many comparisons a whole stretch counts as changed. */
const maxComparisons = 4_000_000

/** The longest common lines stay, everything else is removed or added. */
function between(old: readonly string[], young: readonly string[]): DiffLine[] {
  const removed = old.map((text): DiffLine => ({ kind: 'removed', text }))
  const added = young.map((text): DiffLine => ({ kind: 'added', text }))
  if (old.length === 0 || young.length === 0 || old.length * young.length > maxComparisons)
    return [...removed, ...added]
  const width = young.length + 1
  const length = new Uint32Array((old.length + 1) * width)
  for (let row = old.length - 1; row >= 0; row--) {
    for (let column = young.length - 1; column >= 0; column--) {
      length[row * width + column] =
        old[row] === young[column]
          ? 1 + (length[(row + 1) * width + column + 1] as number)
          : Math.max(length[(row + 1) * width + column] as number, length[row * width + column + 1] as number)
    }
  }
  const lines: DiffLine[] = []
  let row = 0
  let column = 0
  while (row < old.length || column < young.length) {
    if (row < old.length && column < young.length && old[row] === young[column]) {
      lines.push({ kind: 'same', text: old[row] as string })
      row++
      column++
    } else if (
      column < young.length &&
      (row === old.length ||
        (length[row * width + column + 1] as number) > (length[(row + 1) * width + column] as number))
    ) {
      lines.push(added[column++] as DiffLine)
    } else lines.push(removed[row++] as DiffLine)
  }
  return lines
}
