import type { Content, ResultBody } from '../core/result.ts'
import { sizeText } from './size.ts'

/** Something in a result that is not text. */
interface Attachment {
  readonly mimeType: string
  readonly bytes: Buffer
}

const textOf = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined)

const record = (value: unknown): Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {}

function blobOf(part: Content): Attachment | undefined {
  const holder = part.type === 'resource' ? record(part.resource) : part
  const data = textOf(part.type === 'resource' ? holder.blob : part.data)
  if (data === undefined) return undefined
  return { mimeType: textOf(holder.mimeType) ?? 'application/octet-stream', bytes: Buffer.from(data, 'base64') }
}

function partLine(part: Content): string {
  const blob = blobOf(part)
  const { uri, text } = record(part.resource)
  if (blob) return `[${[blob.mimeType, sizeText(blob.bytes.length), ...(uri ? [uri] : [])].join(', ')}]`
  if (part.type === 'text') return textOf(part.text) ?? ''
  if (part.type === 'resource') return textOf(text) ?? `[resource ${uri}]`
  if (part.type === 'resource_link') return `[${part.name ?? 'resource'}: ${part.uri}]`
  return `[${part.type}]`
}

/** A tool's result as people read it: text as it is, a note for everything else, structured content where there is no text. */
export function resultText({ content = [], structuredContent }: ResultBody): string {
  const lines = content.map(partLine)
  const said = content.some(({ type, text }) => type === 'text' && text !== '')
  if (structuredContent !== undefined && !said) lines.push(JSON.stringify(structuredContent, undefined, 2))
  return lines.join('\n')
}

/** The first image, sound or file in a result. */
export const firstBlob = ({ content = [] }: ResultBody): Attachment | undefined =>
  content.map(blobOf).find((blob) => blob !== undefined)
