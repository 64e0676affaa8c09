import { ServerError, ToolwayError } from '../core/errors.ts'
import type { Log } from '../core/log.ts'
import type { Content, Result } from '../core/result.ts'
import { isSchemaObject as isObject } from './constrain/schema.ts'
import { cut } from './cut.ts'

/** What a model is told of a result: its text; structured content where there is none; of the rest, that it is there. */
export function resultText({ body, isError }: Result, most: number): string {
  const { content = [], structuredContent } = body.exact
  const parts = Array.isArray(content) ? content.filter(isObject).map((part) => partText(part as Content)) : []
  const hasText = parts.some(({ isText }) => isText)
  const texts = parts.map(({ text }) => text)
  if (!hasText && structuredContent !== undefined) texts.unshift(JSON.stringify(structuredContent))
  const whole = texts.join('\n')
  const said = whole === '' ? '(The tool gave an empty result.)' : whole
  return cut(isError ? asError(said) : said, most)
}

/** What a model is told of a call that was refused or failed. What nobody expected is told to the log alone. */
export function failureText(thrown: unknown, log: Log, tool: string, most: number): string {
  if (thrown instanceof ServerError) return cut(asError(words(thrown.error.value.message) ?? 'no reason given'), most)
  const error = ToolwayError.from(thrown)
  if (error.code === 'INTERNAL') log.error({ tool, cause: error.cause ?? error }, 'a call of the chat loop failed')
  return asError(error.message)
}

/** A model is told that something has failed in a word that it cannot overlook. */
const asError = (text: string): string => (/^error\b/i.test(text) ? text : `Error: ${text}`)

/** What stands where a text should; servers put anything there, also what cannot be made one by `String`. */
const words = (value: unknown): string | undefined => (typeof value === 'string' ? value : JSON.stringify(value))

interface PartText {
  readonly text: string
  readonly isText: boolean
}

function partText(part: Content): PartText {
  const plain = (text: string): PartText => ({ text, isText: true })
  const described = (text: string): PartText => ({ text: `[${text}]`, isText: false })
  switch (part.type) {
    case 'text':
      return plain(words(part.text) ?? '')
    case 'image':
    case 'audio':
      return described(`${part.type}, ${words(part.mimeType) ?? 'of unknown type'}, ${sizeOf(part.data)}`)
    case 'resource_link':
      return described(
        `resource ${words(part.uri)}${part.description === undefined ? '' : `: ${words(part.description)}`}`,
      )
    case 'resource': {
      const { uri, text, blob, mimeType } = isObject(part.resource) ? part.resource : {}
      if (typeof text === 'string') return plain(text)
      return described(`resource ${words(uri)}, ${words(mimeType) ?? 'of unknown type'}, ${sizeOf(blob)}`)
    }
    default:
      return described(`something of type ${words(part.type)}`)
  }
}

/** The size of what is written in base64. */
const sizeOf = (data: unknown): string =>
  typeof data === 'string' ? `${Math.floor((data.length * 3) / 4)} bytes` : 'of unknown size'
