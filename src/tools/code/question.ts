import { HostRefusal } from '../../core/executor.ts'
import { Json } from '../../core/json.ts'
import { tooDeep } from './json-depth.ts'

/** What a program asks for: a tool by its server and name, or by one spelling of both. */
export interface Question {
  readonly server?: string
  readonly tool: string
  readonly args: Json | undefined
}

const maxName = 300

/** Reads what came out of a sandbox, where anything may have been written. */
export function readQuestion(input: string): Question {
  return questionFrom(read(input))
}

export function readQuestions(input: string, most: number): readonly Question[] {
  const questions = read(input)
  if (!Array.isArray(questions.value) || questions.value.length > most)
    throw refused(`a list of at most ${most} calls is expected`)
  return questions.items().map(questionFrom)
}

function read(input: string): Json {
  if (typeof input !== 'string' || tooDeep(input)) throw refused('it is nested too deeply')
  try {
    return Json.parse(input)
  } catch {
    throw refused('it is not JSON in which each name occurs once')
  }
}

function questionFrom(asked: Json): Question {
  const { value } = asked
  if (typeof value !== 'object' || value === null) throw refused('it names no tool')
  const { server, tool } = value as Record<string, unknown>
  const args = asked.member('args')
  if (!isName(tool) || !(server === undefined || server === null || isName(server))) throw refused('it names no tool')
  return { tool, args, ...(typeof server === 'string' && { server }) }
}

const isName = (value: unknown): value is string => typeof value === 'string' && value !== '' && value.length <= maxName

const refused = (why: string) =>
  new HostRefusal('INVALID_ARGUMENTS', `A call was not understood: ${why}. Write tools.server.tool({ … }).`)
