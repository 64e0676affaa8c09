import type { Served } from '../core/access.ts'
import { ToolwayError } from '../core/errors.ts'
import type { ToolsAsked } from '../serve/admin/port.ts'

/** Some of the tools that fit. */
export interface Selected {
  readonly tools: readonly Served[]
  /** How many fit on all pages. */
  readonly total: number
  readonly nextCursor: string | null
}

/** The tools that somebody looks for, a page at a time, in the order in which they are served. */
export function select(tools: readonly Served[], { query, server, cursor, limit }: ToolsAsked): Selected {
  const words = (query ?? '').toLowerCase().split(/\s+/).filter(Boolean)
  const fitting = tools.filter(
    (tool) => (server === undefined || tool.entry.server === server) && words.every((word) => mentions(tool, word)),
  )
  const start = cursor === undefined ? 0 : startAfter(fitting, cursor)
  const page = fitting.slice(start, start + limit)
  const last = page.at(-1)
  const more = last !== undefined && start + limit < fitting.length
  return { tools: page, total: fitting.length, nextCursor: more ? cursorOf(last) : null }
}

const mentions = ({ name, entry }: Served, word: string): boolean =>
  [name, entry.server, entry.name, entry.definition.title, entry.definition.description].some(
    (text) => typeof text === 'string' && text.toLowerCase().includes(word),
  )

/** A name holds its place, whatever else comes and goes. */
const cursorOf = ({ name }: Served): string => Buffer.from(name).toString('base64url')

function startAfter(tools: readonly Served[], cursor: string): number {
  const name = Buffer.from(cursor, 'base64url').toString()
  const at = tools.findIndex((tool) => tool.name === name)
  if (at >= 0) return at + 1
  throw new ToolwayError('INVALID_ARGUMENTS', 'This cursor is unknown or no longer valid; begin again without one.')
}
