import { type ErrorCode, ServerError, ToolwayError } from '../../core/errors.ts'
import { HostRefusal } from '../../core/executor.ts'
import type { Content, ResultBody } from '../../core/result.ts'
import { Json } from '../../json/json.ts'
import { parseJson } from '../../json/parse-json.ts'
import type { CallStatus } from './answer.ts'
import { plainText, tooDeep } from './text.ts'

/** A tool call from a program. Without `server`, `tool` also contains the server name. */
export interface ProgramCall {
  readonly server?: string
  readonly tool: string
  readonly args: Json | undefined
}

const maxName = 300

/** Parses a message from the sandbox, which may contain anything. */
export const readProgramCall = (input: string): ProgramCall => programCallFrom(read(input))

export function readProgramCalls(input: string, most: number): readonly ProgramCall[] {
  const calls = read(input)
  if (!Array.isArray(calls.value) || calls.value.length > most)
    throw refused(`expected a list of at most ${most} calls`)
  return calls.items().map(programCallFrom)
}

function read(input: string): Json {
  if (typeof input !== 'string' || tooDeep(input)) throw refused('it is nested too deeply')
  try {
    return Json.parse(input)
  } catch {
    throw refused('it is not valid JSON, or has a duplicate key')
  }
}

function programCallFrom(asked: Json): ProgramCall {
  const { value } = asked
  if (typeof value !== 'object' || value === null) throw refused('it names no tool')
  const { server, tool } = value as Record<string, unknown>
  const args = asked.member('args')
  if (!isName(tool) || !(server === undefined || server === null || isName(server))) throw refused('it names no tool')
  return { tool, args, server: server ?? undefined }
}

const isName = (value: unknown): value is string => typeof value === 'string' && value !== '' && value.length <= maxName

const refused = (why: string) =>
  new HostRefusal('INVALID_ARGUMENTS', `Invalid tool call: ${why}. Write tools.server.tool({ … }).`)

const maxMessage = 4000
const maxCode = 100

export function failureOf(
  thrown: unknown,
  sent: boolean,
): { readonly status: CallStatus; readonly refusal: HostRefusal } {
  if (thrown instanceof ServerError) {
    // The code and the message come unchanged from the server, so they may have any type.
    const { code, message } = thrown.error.value
    return { status: 'error', refusal: refusalOf(plainText(JSON.stringify(code), maxCode), message) }
  }
  const error = ToolwayError.from(thrown)
  return { status: sent && mayHaveRun(error) ? 'unknown' : 'refused', refusal: refusalOf(error.code, error.message) }
}

export const refusalOf = (code: string, message: unknown): HostRefusal =>
  new HostRefusal(code, plainText(message, maxMessage) || 'No reason was given.')

/** Errors that are raised before anything is sent to a server. */
const beforehand: readonly ErrorCode[] = [
  'INVALID_ARGUMENTS',
  'SERVER_UNHEALTHY',
  'SERVER_DISABLED',
  'CIRCUIT_OPEN',
  'OVERLOADED',
]

const mayHaveRun = ({ code, kind, details }: ToolwayError): boolean =>
  !(kind.denial || kind.malformed || details.unsent || beforehand.includes(code))

/**
 * The result as JSON: the structured content, else the text (parsed if it is JSON), else the content blocks. The text of
 * JSON from the server stays unchanged, because programs in some languages can read more digits than a double has.
 */
export function unwrapped(body: Json<ResultBody>): string {
  const structured = body.member('structuredContent')
  if (structured?.value !== undefined) return structured.bytes.toString()
  const content = contentOf(body.value)
  if (content.length === 0) return 'null'
  const text = textOf(content)
  if (text === undefined) return JSON.stringify(content)
  return isJson(text) ? text : JSON.stringify(text)
}

export const wordsOf = (body: ResultBody): string =>
  textOf(contentOf(body).filter((piece) => piece?.type === 'text')) ||
  JSON.stringify(body.structuredContent ?? contentOf(body))

/** The content blocks of a result. Results from servers are not validated, so `content` may be anything. */
const contentOf = ({ content }: ResultBody): readonly (Content | null)[] => (Array.isArray(content) ? content : [])

function textOf(content: readonly (Content | null)[]): string | undefined {
  const texts = content.map((piece) =>
    piece?.type === 'text' && typeof piece.text === 'string' ? piece.text : undefined,
  )
  return texts.includes(undefined) ? undefined : texts.join('\n')
}

/** Whether a string is a JSON object or array. A string that happens to be a number or `true` was meant as text. */
const isJson = (text: string): boolean => /^\s*[{[]/.test(text) && !tooDeep(text) && parseJson(text) !== undefined
