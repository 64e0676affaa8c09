import { type ErrorDetails, ToolwayError } from '../../../core/errors.ts'
import {
  checkLog,
  type ModelRefusal,
  type ModelServer,
  modelConnectionError,
  modelRefusalError,
  modelServerFailure,
  readServerMessage,
  type ServerMessage,
} from '../../../egress/model-server.ts'
import { type OptionalField, optionalFields } from '../server-profile.ts'

export class EventTooLong extends Error {
  override readonly name = 'EventTooLong'
}

const unusableAnswer: ErrorDetails = { requestOnly: true }

export const notACompletion = ({ name }: ModelServer, what: string): ToolwayError =>
  modelServerFailure(
    name,
    `answered with ${what} instead of a completion. Check models.${name}.baseUrl.`,
    unusableAnswer,
  )

export const answerTooLong = (server: ModelServer, bytes: number): ToolwayError =>
  modelServerFailure(
    server.name,
    `sent more than ${Math.round(bytes / 1024)} KiB in one answer. ${checkLog(server)}`,
    unusableAnswer,
  )

/** The error for a problem that the server reported in the middle of the stream. */
export const brokenStream = (server: ModelServer, { message }: ServerMessage): ToolwayError =>
  modelServerFailure(
    server.name,
    `reported an error in the middle of its response. ${checkLog(server)} It says: ${message}`,
  )

/** The error for a connection that failed before or during the response. */
export function completionConnectionError(server: ModelServer, thrown: unknown, begun: boolean): ToolwayError {
  if (!(thrown instanceof EventTooLong)) return modelConnectionError(server.name, thrown, begun)
  return modelServerFailure(server.name, `sent an event that is too long. ${checkLog(server)}`, unusableAnswer)
}

/** The error for an expired timeout; `key` is the name of its setting. */
export function timeoutError({ name }: ModelServer, what: string, ms: number, key: string): ToolwayError {
  const message = `The server for the model ${name} ${what} within ${ms / 1000} s (models.${name}.timeouts.${key}).`
  return new ToolwayError('TIMEOUT', `${message} Try again, or shorten the request.`)
}

export const refusalError = (server: ModelServer, refusal: ModelRefusal): ToolwayError =>
  modelRefusalError(
    server,
    refusal,
    (http) => `does not know this model or path (${http}). Check models.${server.name}.baseUrl and model.`,
  )

/** An error in the body of a response with status 200. */
export class RefusalInBody extends Error {
  override readonly name = 'RefusalInBody'
  readonly refusal: ModelRefusal

  constructor(refusal: ModelRefusal) {
    super('refused')
    this.refusal = refusal
  }
}

/** The error reported in a response object; undefined if there is none. */
export function refusalInBody(object: unknown, secrets: readonly string[]): ModelRefusal | undefined {
  if (typeof object !== 'object' || object === null || !('error' in object) || !object.error) return undefined
  const serverMessage = readServerMessage(JSON.stringify(object), secrets)
  const status = Number(serverMessage.code)
  return { status: status >= 400 && status < 600 ? status : 500, serverMessage, retryAfterMs: undefined, inside: true }
}

const isTooMuch =
  /context[ _](?:length|window|size)|too (?:long|many tokens)|maximum (?:context|prompt|number of tokens)/i
const isAboutForm = /grammar|schema|response_format|jinja|tool|structured/i

/** Matches complaints about an out-of-range number, which say nothing about support for the field. */
const isOutOfBounds =
  /too (?:large|big|high|small|low)|must be|should be|at (?:most|least)|(?:less|greater|larger) than|out of range|between|valid range|invalid \S+ value|invalid value|exceed/i
const isUnsupported =
  /unsupported|not (?:support|permitted|allowed)|n't support|unknown|unrecognized|unexpected|deprecated|extra_forbidden/i
const isAboutOneSchema =
  /invalid (?:schema|_?function|tool)|in context|input_schema|function ['"`]|tools[.[]|\$ref|keyword|(?:any|one|all)Of/i

/** What the server says, without the input that it quotes. */
const statement = ({ code, message }: ServerMessage): string =>
  `${code} ${message}`.replace(/["']?\binput(?:_value)?["']?\s*[=:].*/s, '')

/** Whether the server names this field, and not a tool or a message whose name contains it. */
function isNamed(field: OptionalField, serverMessage: ServerMessage): boolean {
  const { param } = serverMessage
  if (param !== '') return param === field || param.startsWith(`${field}.`)
  const said = statement(serverMessage)
  return (
    new RegExp(`(?<![\\w-])${field}(?![\\w-])`).test(said) && !/\b(?:tools?|functions?|schema|messages)\b/i.test(said)
  )
}

/** Whether the server complained about an optional field's value, not about the field itself. */
function isValue(serverMessage: ServerMessage): boolean {
  const said = statement(serverMessage)
  return (
    optionalFields.some((field) => isNamed(field, serverMessage)) &&
    isOutOfBounds.test(said) &&
    !isUnsupported.test(said)
  )
}

/** Whether the server may accept a weaker form. It will not if the problem is the length or an out-of-range number. */
export function mayAcceptWeakerForm({ status, serverMessage }: ModelRefusal): boolean {
  if (isTooMuch.test(`${serverMessage.code} ${serverMessage.message}`) || isValue(serverMessage)) return false
  if (status === 500) return isAboutForm.test(serverMessage.message)
  return status === 400 || status === 422 || status === 501
}

/** Whether the server refuses calls and results in a request without tools (LiteLLM, Bedrock, Anthropic). */
export const requiresTools = ({ serverMessage: { message } }: ModelRefusal): boolean =>
  /`tools=`|`?tools=`? param|toolConfig field must|must define tools/i.test(message)

/** Whether the server may complain about calls and results in the conversation. */
export const isAboutTools = ({ serverMessage: { message } }: ModelRefusal): boolean =>
  /tool|function|role|reasoning|thought/i.test(message)

/** Whether the server refuses the reasoning in earlier messages. */
export const refusesReasoning = ({ serverMessage: { message } }: ModelRefusal): boolean =>
  /\b(?:reasoning(?:_content|_details)?|extra_content)\b/.test(message) && isUnsupported.test(message)

/** The optional field that the server does not support, if it named one. */
export function unsupportedField({ status, serverMessage }: ModelRefusal, body: object): OptionalField | undefined {
  if ((status !== 400 && status !== 422) || !isUnsupported.test(statement(serverMessage))) return undefined
  return optionalFields.find((field) => field in body && isNamed(field, serverMessage))
}

/** Whether the server refused the conversation, so that the refusal says nothing about the form of the request. */
export const isAboutMessages = ({ serverMessage: { message, param } }: ModelRefusal): boolean =>
  /^messages\b/.test(param) || /reasoning_content|thought_signature|thinking block/i.test(message)

/** Whether the server lacks support for tools or schemas, as opposed to refusing the schema of one tool. */
export function isAboutServer({ status, serverMessage }: ModelRefusal): boolean {
  const said = statement(serverMessage)
  if (/^(?:tools|response_format)\b./.test(serverMessage.param) || isAboutOneSchema.test(said)) return false
  return status === 501 || isUnsupported.test(said) || /--jinja|--enable-auto-tool-choice/.test(said)
}
