import { HostRefusal } from '../../core/executor.ts'
import { tooDeep } from './json-depth.ts'

/** What a program asks for: a tool by its server and name, or by one spelling of both. */
export interface Question {
  readonly server?: string
  readonly tool: string
  readonly args: unknown
}

const longestName = 300

/** Reads what came out of a sandbox, where anything may have been written. */
export function readQuestion(input: string): Question {
  return questionFrom(read(input))
}

export function readQuestions(input: string, most: number): readonly Question[] {
  const questions = read(input)
  if (!Array.isArray(questions) || questions.length > most) throw refused(`a list of at most ${most} calls is expected`)
  return questions.map(questionFrom)
}

function read(input: string): unknown {
  if (typeof input !== 'string' || tooDeep(input)) throw refused('it is nested too deeply')
  try {
    return JSON.parse(input)
  } catch {
    throw refused('it is not JSON')
  }
}

function questionFrom(value: unknown): Question {
  if (typeof value !== 'object' || value === null) throw refused('it names no tool')
  const { server, tool, args } = value as Record<string, unknown>
  if (!isName(tool) || !(server === undefined || server === null || isName(server))) throw refused('it names no tool')
  return { tool, args, ...(typeof server === 'string' && { server }) }
}

const isName = (value: unknown): value is string =>
  typeof value === 'string' && value !== '' && value.length <= longestName

const refused = (why: string) =>
  new HostRefusal('INVALID_ARGUMENTS', `A call was not understood: ${why}. Write tools.server.tool({ … }).`)
