import type { Schema } from '../../schema-form/schema.ts'

/** The data URL for an embedded image or sound. Undefined for any other type. */
export function dataUrl({ data, mimeType }: Schema, kind: 'image' | 'audio'): string | undefined {
  if (typeof data !== 'string' || typeof mimeType !== 'string') return undefined
  // Reject other characters: they could inject parameters or another type into the URL.
  if (!new RegExp(`^${kind}/[a-z0-9.+-]+$`, 'i').test(mimeType) || !/^[A-Za-z0-9+/=_-]*$/.test(data)) return undefined
  return `data:${mimeType};base64,${data}`
}
