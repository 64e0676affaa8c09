import { relative } from 'node:path'
import type { SourceLocation } from './tree.ts'

export interface ConfigProblem {
  readonly file: string
  /** The line number, counted from 1; absent if the problem concerns the whole file. */
  readonly line?: number
  readonly column?: number
  /** The key's path in the configuration; empty if the problem does not concern a key. */
  readonly key: string
  /** What is wrong and how to fix it. */
  readonly message: string
  readonly expected?: string
  readonly found?: string
  readonly suggestion?: string
  /** The source line; omitted if it may contain a secret. */
  readonly excerpt?: string
}

type Facts = Partial<Pick<ConfigProblem, 'key' | 'expected' | 'found' | 'suggestion'>>

const secretWords = /token|secret|passw|key|auth|bearer|cookie|credential|env\b|headers|:\/{0,2}[^/\s]*@/i
/** Matches long runs of letters and digits, which may be keys. */
const secretLook = /(?=[\w+/=-]*\d)(?=[\w+/=-]*[a-z])[\w+/=-]{20,}/i

/** Whether text may contain a secret. Such text is not quoted, because errors end up in logs and issue trackers. */
export const mayHoldSecret = (text: string): boolean =>
  text.length > 200 || secretWords.test(text) || secretLook.test(text)

export function problemAt(place: SourceLocation, message: string, facts: Facts = {}): ConfigProblem {
  const { text, path } = place.file
  const before = text.slice(0, place.offset)
  const lineStart = before.lastIndexOf('\n') + 1
  const line = before.split('\n').length
  const excerpt = (text.slice(lineStart).split('\n', 1)[0] as string).trimEnd()
  const key = facts.key ?? place.key
  const shown = !mayHoldSecret(excerpt) && !secretWords.test(key)
  return {
    file: path,
    line,
    column: place.offset - lineStart + 1,
    ...facts,
    key,
    // Also name the key as it is written in the file: in another dialect it differs from Toolway's key.
    message: key.startsWith(place.key) ? message : `${message} (written as ${place.key})`,
    ...(shown && { excerpt }),
  }
}

export const fileProblem = (file: string, message: string): ConfigProblem => ({ file, key: '', message })

/** A problem without its location. */
export const problemText = ({ key, message }: Pick<ConfigProblem, 'key' | 'message'>): string =>
  key === '' ? message : `${key}: ${message}`

/** Formats problems in the style of a compiler: location, key, message, then the source line with a caret. */
function formatProblems(problems: readonly ConfigProblem[], cwd?: string): string {
  return problems.map((problem) => formatProblem(problem, cwd)).join('\n')
}

function formatProblem(problem: ConfigProblem, cwd: string | undefined): string {
  const { file, line, column, excerpt } = problem
  const near = cwd === undefined ? file : relative(cwd, file)
  const shortest = near !== '' && near.length < file.length ? near : file
  const place = line === undefined ? shortest : `${shortest}:${line}:${column}`
  const head = `${place}: ${problemText(problem)}`
  if (line === undefined || column === undefined || excerpt === undefined) return head
  const gutter = String(line)
  // Keep tabs, so that the caret is below the right column.
  const indent = excerpt.slice(0, column - 1).replace(/[^\t]/g, ' ')
  return `${head}\n  ${gutter} | ${excerpt}\n  ${' '.repeat(gutter.length)} | ${indent}^`
}

/** Keeps the order of the files and sorts each file's problems by position. */
function inOrder(problems: readonly ConfigProblem[]): ConfigProblem[] {
  const files = [...new Set(problems.map(({ file }) => file))]
  const offset = ({ line = 0, column = 0 }: ConfigProblem) => line * 1e6 + column
  return problems.toSorted((a, b) => files.indexOf(a.file) - files.indexOf(b.file) || offset(a) - offset(b))
}

export class ConfigError extends Error {
  override readonly name = 'ConfigError'
  readonly problems: readonly ConfigProblem[]
  /** Files that the configuration refers to. A change to one of them may fix the problem. */
  readonly filesToWatch: readonly string[]

  constructor(problems: readonly ConfigProblem[], filesToWatch: readonly string[] = []) {
    const count = problems.length === 1 ? 'a problem' : `${problems.length} problems`
    const ordered = inOrder(problems)
    super(`The configuration has ${count}:\n${formatProblems(ordered)}`)
    this.problems = ordered
    this.filesToWatch = filesToWatch
  }

  /** Shows paths relative to `cwd` where that is shorter. */
  format(cwd?: string): string {
    return formatProblems(this.problems, cwd)
  }
}
