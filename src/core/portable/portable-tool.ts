import type { Json } from '../../json/json.ts'
import { memoizeByObject } from '../../lib/memoize.ts'
import type { Definition } from '../entry.ts'
import { restoreArguments } from './restore-arguments.ts'
import { type PortableSchema, rewriteSchema } from './rewrite-schema.ts'

/** `portable`: tool definitions are rewritten into what all model APIs accept (W8). */
export type SchemaSetting = 'verbatim' | 'portable'

/** Converts the arguments that a caller gives for its own form of a definition. */
export type ArgumentRestorer = (given: Json<Record<string, unknown>>) => Json<Record<string, unknown>>

/** The input schema of a tool's original definition, rewritten. */
const portableInput = memoizeByObject((original: Definition): PortableSchema => rewriteSchema(original.inputSchema))

/** Set if calls with arguments for the portable form have to be converted for the original definition. */
export function argumentRestorer(original: Definition): ArgumentRestorer | undefined {
  const { restoration } = portableInput(original)
  return restoration && ((given) => restoreArguments(given, restoration))
}

/** OpenAI refuses longer descriptions of tools. */
const maxHintedDescription = 1_024

/** The definition that a caller sees, which may have another name and other metadata than the original, rewritten. */
export function portableDefinition(shown: Definition, original: Definition): Definition {
  const { description = shown.title ?? shown.name } = shown
  const text = typeof description === 'string' ? description : ''
  return { ...shown, description: shortenDescription(text), inputSchema: portableInput(original).schema }
}

function shortenDescription(text: string): string {
  if (text.length <= maxHintedDescription) return text
  const cut = text.slice(0, maxHintedDescription - 1)
  const end = cut.lastIndexOf(' ')
  return `${(end > maxHintedDescription / 2 ? cut.slice(0, end) : cut).toWellFormed()}…`
}

/** A tool's name with the letters that all APIs accept, and the start that they accept. */
export const portableName = (name: string): string =>
  name
    .replaceAll(/[^A-Za-z0-9_-]/g, '_')
    .replace(/^(?![A-Za-z_])/, '_')
    .slice(0, 64)
