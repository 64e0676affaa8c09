import type { Definition } from '../../../core/entry.ts'
import { requiredNames } from '../../../core/schema-keywords.ts'
import { resolveReference } from '../../../json/json-pointer.ts'
import { isRecord } from '../../../lib/is-record.ts'
import { commentText, quoted } from '../text.ts'
import { body, propertyName, schemaType } from './schema-type.ts'
import { createTextBudget, listOf } from './type-text.ts'

const maxDescription = 1000
/**
 * Maximum size of the result type, as a share of the budget. Argument types may use the full budget, because programs
 * must pass correct arguments.
 */
const resultShare = 0.4

export interface Declared {
  /** The tool's name in programs. */
  readonly identifier: string
  readonly name: string
  readonly definition: Definition
}

export function toolDeclaration({ identifier, name, definition }: Declared, characters: number): string {
  const { description, inputSchema, outputSchema } = definition
  const args = typeOf(inputSchema, characters, false)
  const result = isRecord(outputSchema) ? typeOf(outputSchema, characters * resultShare, true) : 'any'
  const exact = identifier === name ? [] : [`Exact name: ${quoted(name)}.`]
  const comment = commentText([...exact, description ?? ''].join(' '), maxDescription)
  const signature = `${propertyName(identifier)}(args${needsSome([inputSchema], inputSchema) ? '' : '?'}: ${args}): Promise<${result}>`
  return comment === '' ? signature : `/** ${comment} */\n${signature}`
}

const typeOf = (schema: unknown, characters: number, isResult: boolean): string =>
  schemaType(schema, { root: schema, isResult, budget: createTextBudget(characters), depth: 0, through: [] }).text

/** Max schemas to look at. References may go in circles or double with each step. */
const maxSchemas = 200

/** Whether one of the schemas requires a member, in itself or in the schemas that it refers to or combines. */
function needsSome(schemas: readonly unknown[], root: unknown, seen = { count: 0 }): boolean {
  return schemas.some((schema) => {
    if (!isRecord(schema) || ++seen.count > maxSchemas) return false
    if (requiredNames(schema).length > 0) return true
    if (needsSome([resolveReference(root, schema.$ref), ...listOf(schema.allOf)], root, seen)) return true
    return [listOf(schema.anyOf), listOf(schema.oneOf)].some(
      (choice) => choice.length > 0 && choice.every((one) => needsSome([one], root, seen)),
    )
  })
}

export function declare(servers: ReadonlyMap<string, readonly string[]>): string {
  if (servers.size === 0) return ''
  const members = [...servers].map(([server, methods]) => `${propertyName(server)}: ${body(methods)}`)
  return `declare const tools: ${body(members)}`
}
