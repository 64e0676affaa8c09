import type { ZodType } from 'zod'
import { typeInWords, unwrap, valuesOf } from './type-in-words.ts'

/** The path of a key; `NAME` stands for a name, `[]` for every item of a list. */
export type KeyPath = readonly string[]

export interface Key {
  readonly path: KeyPath
  readonly type: string
  /** The default as written in YAML, if any. */
  readonly initial?: unknown
  readonly required: boolean
  readonly meaning: string
}

/** One of several forms of an object, selected by the value of one key. */
export interface Form {
  readonly path: KeyPath
  readonly decidedBy: string
  readonly value: string
  readonly meaning: string
  readonly keys: readonly Key[]
}

export interface Keys {
  readonly keys: readonly Key[]
  readonly forms: readonly Form[]
}

/** All keys at and below a path, sections before their members. */
export function keysAt(schema: ZodType, path: KeyPath): Keys {
  const { definition, description } = unwrap(schema)
  const { shape, catchall, valueType, element, discriminator, options = [] } = definition
  // The section NAME and the items of a list have no description.
  const own = { keys: description === '' ? [] : [keyOf(schema, path)], forms: [] }
  if (shape) {
    const members = Object.entries(shape).map(([key, inner]) => keysAt(inner, [...path, key]))
    return join([own, ...members, ...(catchall ? [keysAt(catchall, [...path, 'NAME'])] : [])])
  }
  if (valueType) return join([own, keysAt(valueType, [...path, 'NAME'])])
  if (element) return join([own, keysAt(element, [...path, '[]'])])
  return { ...own, forms: discriminator ? options.map((option) => formOf(option, discriminator, path)) : [] }
}

const join = (parts: readonly Keys[]): Keys => ({
  keys: parts.flatMap(({ keys }) => keys),
  forms: parts.flatMap(({ forms }) => forms),
})

function keyOf(schema: ZodType, path: KeyPath): Key {
  const { definition, initial, required, description: meaning } = unwrap(schema)
  const { shape } = definition
  return { path, type: typeInWords(schema), required, meaning, ...(!shape && { initial }) }
}

function formOf(schema: ZodType, decidedBy: string, path: KeyPath): Form {
  const { [decidedBy]: deciding, ...rest } = unwrap(schema).definition.shape ?? {}
  const [value = ''] = valuesOf(deciding as ZodType)
  const meaning = unwrap(deciding as ZodType).description
  const keys = Object.entries(rest).flatMap(([key, inner]) => keysAt(inner, [...path, key]).keys)
  return { path, decidedBy, value, meaning, keys }
}
