import type { Definition } from '../../../core/entry.ts'
import { commentText, quoted } from '../text.ts'
import { body, propertyName, schemaType } from './schema-type.ts'
import { createTextBudget, isSchema } from './type-text.ts'

const maxDescription = 1000
/** What is left for a result once the arguments have been written: those are what a program must get right. */
const resultShare = 0.4

export interface Declared {
  /** How programs spell it. */
  readonly identifier: string
  /** How its server spells it. */
  readonly name: string
  readonly definition: Definition
}

/** One tool as a method: what it is for, what it takes, what it gives. Never much longer than `characters`. */
export function toolDeclaration({ identifier, name, definition }: Declared, characters: number): string {
  const { description, inputSchema, outputSchema } = definition
  const args = typeOf(inputSchema, characters)
  const result = isSchema(outputSchema) ? typeOf(outputSchema, characters * resultShare) : 'any'
  const exact = identifier === name ? [] : [`Exact name: ${quoted(name)}.`]
  const comment = commentText([...exact, description ?? ''].join(' '), maxDescription)
  const signature = `${propertyName(identifier)}(args${needsSome(inputSchema) ? '' : '?'}: ${args}): Promise<${result}>`
  return comment === '' ? signature : `/** ${comment} */\n${signature}`
}

const typeOf = (schema: unknown, characters: number): string =>
  schemaType(schema, { root: schema, allowance: createTextBudget(characters), depth: 0, through: [] }).text

const needsSome = (schema: unknown): boolean =>
  isSchema(schema) && Array.isArray(schema.required) && schema.required.length > 0

/** The methods of each server, by the identifier of the server, as one declaration of `tools`. */
export function declare(servers: ReadonlyMap<string, readonly string[]>): string {
  if (servers.size === 0) return ''
  const members = [...servers].map(([server, methods]) => `${propertyName(server)}: ${body(methods)}`)
  return `declare const tools: ${body(members)}`
}
