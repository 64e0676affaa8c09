import type { Definition } from '../../../src/core/entry.ts'

/** A definition and, in a word, its style: of the poison, or of the honest habit that looks like it. */
export type DefinitionCase = readonly [style: string, definition: Definition]

type Properties = Readonly<Record<string, unknown>>

/** A tool with this description; a property given as a text is a text argument so described. */
export const tool = (
  name: string,
  description: string,
  properties: Properties = {},
  more: Readonly<Record<string, unknown>> = {},
): Definition => ({
  name,
  description,
  inputSchema: {
    type: 'object',
    properties: Object.fromEntries(
      Object.entries(properties).map(([key, value]) => [
        key,
        typeof value === 'string' ? { type: 'string', description: value } : value,
      ]),
    ),
  },
  ...more,
})

/** Every character moved into the invisible tag block, where a person sees nothing and a model may read on. */
export const tagged = (text: string): string =>
  [...text].map((character) => String.fromCodePoint(0xe0000 + (character.codePointAt(0) as number))).join('')

export const base64 = (text: string): string => Buffer.from(text).toString('base64')

export const hex = (text: string): string => Buffer.from(text).toString('hex')

/** Bits of a text as zero-width characters. */
export const zeroWidth = (text: string): string =>
  [...Buffer.from(text)]
    .flatMap((byte) => [...byte.toString(2).padStart(8, '0')])
    .map((bit) => (bit === '1' ? '\u200b' : '\u200c'))
    .join('')
