import { statSync } from 'node:fs'
import { filesOf } from './hooks.ts'

interface Known {
  readonly tag: string
  /** The state of every file that it was made of. */
  marks: string
}

/** Modules stay in memory for as long as the process runs, so what is known of them does, too. */
const known = new Map<string, Known>()
let count = 0

/** The tag to import a module with: the same as before, unless one of its files has changed since. */
export function tagFor(file: string): string {
  const before = known.get(file)
  if (before && before.marks === marksOf(before.tag)) return before.tag
  const tag = `${++count}`
  known.set(file, { tag, marks: '' })
  return tag
}

/** Remembers what a module has turned out to be made of. */
export function noteFiles(file: string): void {
  const found = known.get(file)
  if (found) found.marks = marksOf(found.tag)
}

const marksOf = (tag: string): string => filesOf(tag).map(markOf).join('\n')

function markOf(file: string): string {
  const facts = statSync(file, { bigint: true, throwIfNoEntry: false })
  return facts ? `${file} ${facts.ino} ${facts.size} ${facts.mtimeNs} ${facts.ctimeNs}` : file
}
