import { relative } from 'node:path'
import type { SourceLocation } from './tree.ts'

/** One thing that is wrong with a configuration. */
export interface ConfigProblem {
  readonly file: string
  /** From 1; absent where the file as a whole is at fault. */
  readonly line?: number
  readonly column?: number
  /** The key path, empty where no key is at fault. */
  readonly key: string
  /** A sentence: what is wrong and what to do. */
  readonly message: string
  readonly expected?: string
  readonly found?: string
  readonly suggestion?: string
  /** The line at fault, unless it may hold a secret. */
  readonly excerpt?: string
}

type Facts = Partial<Pick<ConfigProblem, 'key' | 'expected' | 'found' | 'suggestion'>>

const secretWords = /token|secret|passw|key|auth|bearer|cookie|credential|env\b|headers|:\/{0,2}[^/\s]*@/i
/** A long run of letters and digits is what keys look like. */
const secretLook = /(?=[\w+/=-]*\d)(?=[\w+/=-]*[a-z])[\w+/=-]{20,}/i

/** Errors reach logs and issue trackers, so what may hold a secret is not repeated in them. */
export const mayHoldSecret = (text: string): boolean =>
  text.length > 200 || secretWords.test(text) || secretLook.test(text)

/** A problem at a place in a file. */
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
    // Users of another dialect look for the key that they wrote.
    message: key.startsWith(place.key) ? message : `${message} (written as ${place.key})`,
    ...(shown && { excerpt }),
  }
}

/** A problem with a file as a whole. */
export const fileProblem = (file: string, message: string): ConfigProblem => ({ file, key: '', message })

/** Prints problems the way compilers do: place, key, sentence, then the line with a caret. */
function formatProblems(problems: readonly ConfigProblem[], cwd?: string): string {
  return problems.map((problem) => formatProblem(problem, cwd)).join('\n')
}

function formatProblem({ file, line, column, key, message, excerpt }: ConfigProblem, cwd: string | undefined): string {
  const near = cwd === undefined ? file : relative(cwd, file)
  const shortest = near !== '' && near.length < file.length ? near : file
  const place = line === undefined ? shortest : `${shortest}:${line}:${column}`
  const head = `${place}: ${key === '' ? '' : `${key}: `}${message}`
  if (line === undefined || column === undefined || excerpt === undefined) return head
  const gutter = String(line)
  // Tabs stay tabs so that the caret stands below its character.
  const indent = excerpt.slice(0, column - 1).replace(/[^\t]/g, ' ')
  return `${head}\n  ${gutter} | ${excerpt}\n  ${' '.repeat(gutter.length)} | ${indent}^`
}

/** Files in the order in which they come up, each from top to bottom. */
function inOrder(problems: readonly ConfigProblem[]): ConfigProblem[] {
  const files = [...new Set(problems.map(({ file }) => file))]
  const offset = ({ line = 0, column = 0 }: ConfigProblem) => line * 1e6 + column
  return problems.toSorted((a, b) => files.indexOf(a.file) - files.indexOf(b.file) || offset(a) - offset(b))
}

/** A configuration that cannot be used, with everything that is wrong with it. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError'
  readonly problems: readonly ConfigProblem[]
  /** Files that it names: a change of one may mend it. */
  readonly places: readonly string[]

  constructor(problems: readonly ConfigProblem[], places: readonly string[] = []) {
    const count = problems.length === 1 ? 'a problem' : `${problems.length} problems`
    const ordered = inOrder(problems)
    super(`The configuration has ${count}:\n${formatProblems(ordered)}`)
    this.problems = ordered
    this.places = places
  }

  /** Every problem with its place; paths are shortened against `cwd`. */
  format(cwd?: string): string {
    return formatProblems(this.problems, cwd)
  }
}
