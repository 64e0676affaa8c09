import { CannotExpress } from './cannot-express.ts'
import { toGrammar } from './gbnf/convert.ts'
import { keptByContent } from './kept-by-content.ts'
import { createPurse } from './purse.ts'
import { isSchemaObject, type Schema } from './schema.ts'

/** A grammar, and the demands of the schema that it does not make. */
export interface Grammar {
  readonly gbnf: string
  /** Empty where every text of the grammar fits the schema. What is listed has to be checked afterwards. */
  readonly dropped: readonly { readonly at: string; readonly keyword: string }[]
}

/** A schema with more such demands is better not put into a grammar. */
const maxDropped = 32

/**
 * The strongest grammar that can be had, made once for each content: one tool with an odd schema should not keep the
 * others from theirs. What is left out is told. Throws `CannotExpress` where leaving out does not help.
 */
export const bestGrammar: (schema: Schema) => Grammar = keptByContent((schema) => {
  const dropped: { at: string; keyword: string }[] = []
  const purse = createPurse()
  let looser = schema
  for (;;) {
    try {
      return { gbnf: toGrammar(looser, undefined, purse), dropped }
    } catch (error) {
      if (!(error instanceof CannotExpress) || dropped.length >= maxDropped) throw error
      const next = without(looser, error.at, error.keyword)
      if (next === undefined) throw error
      dropped.push({ at: error.at, keyword: error.keyword })
      looser = next
    }
  }
})

/** A copy of the schema with one demand less; `undefined` where it is not there. */
function without(schema: Schema, at: string, keyword: string): Schema | undefined {
  const copy: unknown = structuredClone(schema)
  let place = copy
  for (const part of at.split('/').slice(1)) {
    const name = part.replaceAll('~1', '/').replaceAll('~0', '~')
    place =
      typeof place === 'object' && place !== null && Object.hasOwn(place, name)
        ? (place as Record<string, unknown>)[name]
        : undefined
  }
  if (!isSchemaObject(place) || !Object.hasOwn(place, keyword)) return undefined
  const fields = place as Record<string, unknown>
  // Branches that may overlap are still better than none.
  if (keyword === 'oneOf' && fields.anyOf === undefined) fields.anyOf = fields.oneOf
  delete fields[keyword]
  return copy as Schema
}
