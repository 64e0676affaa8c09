import * as z from 'zod'
import { ToolwayError } from '../../core/errors.ts'
import { sniffedType } from '../media-type.ts'
import type { Choice } from './choose.ts'

/** The argument by which a caller says which model it wants. */
export const modelArgument = ({ names }: Choice) =>
  z
    .string()
    .optional()
    .describe(`Which model: ${names.slice(0, 20).join(', ')}. The first if absent.`)

/** Bytes out of base64, also out of a `data:` URL; what they are is read from them. */
export function bytesFrom(field: string, data: string, kind: 'image' | 'audio', most: number) {
  const encoded = data.replace(/^data:[^,]{0,200};base64,/i, '').replace(/\s+/g, '')
  const refuse = (what: string) => new ToolwayError('INVALID_ARGUMENTS', `"${field}" ${what}`)
  if (!/^[A-Za-z0-9+/_-]*={0,2}$/.test(encoded)) throw refuse('must be base64.')
  if (encoded.length > Math.ceil(most / 3) * 4) throw refuse(`is larger than ${most} bytes; send less.`)
  const bytes = Buffer.from(encoded, 'base64')
  const mimeType = sniffedType(bytes)
  if (mimeType?.startsWith(`${kind}/`)) return { bytes, mimeType }
  const known =
    kind === 'image' ? 'a PNG, JPEG, GIF, WebP or AVIF image' : 'audio as WAV, MP3, OGG, FLAC, AAC, MP4 or WebM'
  throw refuse(`is not ${known}.`)
}
