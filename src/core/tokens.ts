import { memoizeByObject } from '../lib/memoize.ts'
import type { Served, View } from './access.ts'
import type { Definition } from './entry.ts'
import { type Exposure, exposures } from './exposure.ts'

/** What a token is assumed to have. */
export const charactersPerToken = 4

/** Estimates how many context tokens a tool uses: name, description and schema, at four characters per token. */
export const tokensOf = (name: string, { description, inputSchema }: Definition): number =>
  Math.ceil(
    (name.length + (description?.length ?? 0) + (inputSchema ? schemaLength(inputSchema) : 0)) / charactersPerToken,
  )

/** The length of a schema as JSON. Cached, so that counting thousands of tools does not serialize schemas again. */
const schemaLength = memoizeByObject((schema: object): number => JSON.stringify(schema).length)

/** How many tokens a list of tools uses. Cached, because views return the same list until something changes. */
export const tokenCost = memoizeByObject((tools: readonly Served[]): number =>
  tools.reduce((total, { name, definition }) => total + tokensOf(name, definition), 0),
)

/** How many tokens a caller's tools use in each exposure mode (B8). */
export const costsOf = (view: View) =>
  Object.fromEntries(exposures.map((mode) => [mode, tokenCost(view.shown(mode))])) as Record<Exposure, number>

/** What a client pays for its tools, and what the agent's exposure mode saves it. */
export function tokenAccount(view: Pick<View, 'shown'>) {
  const direct = tokenCost(view.shown('direct'))
  const exposed = tokenCost(view.shown())
  return { direct, exposed, saved: Math.max(0, direct - exposed) }
}
