import type { Schema } from '../../schema-form/schema.ts'

/** The address of an image or a sound that is in the answer itself; none where its type is something else. */
export function dataUrl({ data, mimeType }: Schema, kind: 'image' | 'audio'): string | undefined {
  if (typeof data !== 'string' || typeof mimeType !== 'string') return undefined
  // Anything else could smuggle parameters or another type into the address.
  if (!new RegExp(`^${kind}/[a-z0-9.+-]+$`, 'i').test(mimeType) || !/^[A-Za-z0-9+/=_-]*$/.test(data)) return undefined
  return `data:${mimeType};base64,${data}`
}

/** JSON in a text is easier to read in lines; everything else stays as it is. */
export function pretty(text: string): string {
  if (!/^\s*[[{]/.test(text)) return text
  try {
    return JSON.stringify(JSON.parse(text), null, 2)
  } catch {
    return text
  }
}
