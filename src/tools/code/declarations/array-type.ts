import type { Place, WriteSchema } from './place.ts'
import { listOf, type Schema } from './schema.ts'
import { atom, closed, type Type } from './type.ts'

const maxTuple = 32

/** `string[]`, or a tuple where places have schemas of their own, in the words of either draft. */
export function arrayType(schema: Schema, place: Place, write: WriteSchema): Type {
  const places = listOf(schema.prefixItems ?? schema.items).slice(0, maxTuple)
  if (places.length === 0) return atom(`${closed(write(itemsOf(schema), place))}[]`)
  const needed = typeof schema.minItems === 'number' ? schema.minItems : 0
  const types = places.map((item, at) => `${closed(write(item, place))}${at < needed ? '' : '?'}`)
  const rest = schema.prefixItems === undefined ? schema.additionalItems : schema.items
  return atom(`[${[...types, ...(rest === false ? [] : [`...${closed(write(rest, place))}[]`])].join(', ')}]`)
}

/** A list of none says nothing about the others. */
const itemsOf = ({ items }: Schema): unknown => (Array.isArray(items) ? true : items)
