import { type ErrorCode, ServerError, ToolwayError } from '../../core/errors.ts'
import { HostRefusal } from '../../core/executor.ts'
import type { Content, ResultBody } from '../../core/result.ts'
import { Json } from '../../json/json.ts'
import { parseJson } from '../../json/parse-json.ts'
import type { CallStatus } from './answer.ts'
import { tooDeep, visibleLine } from './text.ts'

/** A tool call from a program. Without `server`, `tool` also contains the server name. */
export interface ProgramCall {
  readonly server?: string
  readonly tool: string
  readonly args: Json | undefined
}

const maxProgramName = 300

/** Parses a message from the sandbox, which may contain anything. */
export const readProgramCall = (input: string): ProgramCall => programCallFrom(readProgramMessage(input))

export function readProgramCalls(input: string, most: number): readonly ProgramCall[] {
  const calls = readProgramMessage(input)
  if (!Array.isArray(calls.value) || calls.value.length > most)
    throw invalidProgramCall(`expected a list of at most ${most} calls`)
  return calls.items().map(programCallFrom)
}

function readProgramMessage(input: string): Json {
  if (typeof input !== 'string' || tooDeep(input)) throw invalidProgramCall('it is nested too deeply')
  try {
    return Json.parse(input)
  } catch {
    throw invalidProgramCall('it is not valid JSON, or has a duplicate key')
  }
}

function programCallFrom(asked: Json): ProgramCall {
  const { value } = asked
  if (typeof value !== 'object' || value === null) throw invalidProgramCall('it names no tool')
  const { server, tool } = value as Record<string, unknown>
  const args = asked.member('args')
  if (!isToolName(tool) || !(server === undefined || server === null || isToolName(server)))
    throw invalidProgramCall('it names no tool')
  return { tool, args, server: server ?? undefined }
}

const isToolName = (value: unknown): value is string =>
  typeof value === 'string' && value !== '' && value.length <= maxProgramName

const invalidProgramCall = (why: string) =>
  new HostRefusal('INVALID_ARGUMENTS', `Invalid tool call: ${why}. Write tools.server.tool({ … }).`)

const maxRefusalMessage = 4000
const maxCode = 100

export function programFailure(
  thrown: unknown,
  sent: boolean,
): { readonly status: CallStatus; readonly refusal: HostRefusal } {
  if (thrown instanceof ServerError) {
    // The code and the message come unchanged from the server, so they may have any type.
    const { code, message } = thrown.error.value
    return { status: 'error', refusal: hostRefusal(visibleLine(JSON.stringify(code), maxCode), message) }
  }
  const error = ToolwayError.from(thrown)
  return {
    status: sent && mayCallHaveRun(error) ? 'unknown' : 'refused',
    refusal: hostRefusal(error.code, error.message),
  }
}

export const hostRefusal = (code: string, message: unknown): HostRefusal =>
  new HostRefusal(code, visibleLine(message, maxRefusalMessage) || 'No reason was given.')

/** Errors that are raised before anything is sent to a server. */
const beforehand: readonly ErrorCode[] = [
  'INVALID_ARGUMENTS',
  'SERVER_UNHEALTHY',
  'SERVER_DISABLED',
  'CIRCUIT_OPEN',
  'OVERLOADED',
]

const mayCallHaveRun = ({ code, kind, details }: ToolwayError): boolean =>
  !(kind.denial || kind.malformed || details.unsent || beforehand.includes(code))

/**
 * The result as JSON: the structured content, else the text (parsed if it is JSON), else the content blocks. The text of
 * JSON from the server stays unchanged, because programs in some languages can read more digits than a double has.
 */
export function resultJson(body: Json<ResultBody>): string {
  const structured = body.member('structuredContent')
  if (structured?.value !== undefined) return structured.bytes.toString()
  const content = contentBlocks(body.value)
  if (content.length === 0) return 'null'
  const text = blocksText(content)
  if (text === undefined) return JSON.stringify(content)
  return isJsonContainer(text) ? text : JSON.stringify(text)
}

export const failureWords = (body: ResultBody): string =>
  blocksText(contentBlocks(body).filter((piece) => piece?.type === 'text')) ||
  JSON.stringify(body.structuredContent ?? contentBlocks(body))

/** The content blocks of a result. Results from servers are not validated, so `content` may be anything. */
const contentBlocks = ({ content }: ResultBody): readonly (Content | null)[] => (Array.isArray(content) ? content : [])

function blocksText(content: readonly (Content | null)[]): string | undefined {
  const texts = content.map((piece) =>
    piece?.type === 'text' && typeof piece.text === 'string' ? piece.text : undefined,
  )
  return texts.includes(undefined) ? undefined : texts.join('\n')
}

/** Whether a string is a JSON object or array. A string that happens to be a number or `true` was meant as text. */
const isJsonContainer = (text: string): boolean =>
  /^\s*[{[]/.test(text) && !tooDeep(text) && parseJson(text) !== undefined
