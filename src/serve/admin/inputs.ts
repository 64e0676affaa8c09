import type * as z from 'zod'
import { Json } from '../../core/json.ts'
import { extentOf } from '../../core/json-text/extent.ts'
import { maxDepth } from '../../core/json-text/skip.ts'
import { Refusal, rpc } from '../refusal.ts'

/** The query of a URL as its schema wants it; what is empty counts as left out. */
export function readQuery(url: string, schema: z.ZodObject | undefined): unknown {
  const start = url.indexOf('?')
  const given = new URLSearchParams(start < 0 ? '' : url.slice(start + 1))
  if (schema === undefined) return undefined
  const values: Record<string, string> = {}
  for (const [name, value] of given) {
    if (value === '') continue
    if (Object.hasOwn(values, name)) throw bad(`The query has ${shown(name)} twice.`)
    // A plain assignment to __proto__ would be none.
    Object.defineProperty(values, name, { value, enumerable: true })
  }
  return checked(schema, values, 'query')
}

/** The body, as JSON and as its schema wants it. */
export const parseInput = (bytes: Buffer, schema: z.ZodObject): unknown => checked(schema, parsed(bytes), 'body')

/** A member of a body in the bytes it came in, which can be sent on; a body that can be read in two ways is refused. */
export function memberOf(bytes: Buffer, name: string): Json | undefined {
  try {
    return Json.parse(bytes.toString('utf8')).member(name)
  } catch (error) {
    throw bad(`The body cannot be used: ${(error as Error).message}.`)
  }
}

function checked(schema: z.ZodObject, value: unknown, what: string): unknown {
  const result = schema.safeParse(value)
  if (result.success) return result.data
  const sentences = result.error.issues.slice(0, 3).map(({ path, message, code, ...issue }) => {
    const name = path.length === 0 ? `The ${what}` : shown(path.join('.'))
    const unknown = 'keys' in issue ? (issue.keys as string[]).slice(0, 3).map(shown).join(', ') : undefined
    return unknown === undefined ? `${name}: ${message}` : `${name} has ${unknown}, which is not known here`
  })
  throw bad(`${sentences.join('; ')}.`)
}

function parsed(bytes: Buffer): unknown {
  // Arguments go on to a server as JSON again, and whoever writes JSON goes down into it.
  if (extentOf(bytes).depth > maxDepth) throw bad(`The body nests deeper than ${maxDepth} levels.`)
  try {
    return JSON.parse(bytes.toString('utf8'))
  } catch {
    throw bad('The body is no JSON.')
  }
}

const bad = (sentence: string) => new Refusal(400, rpc.params, sentence)

/** What a stranger sent is quoted and cut. */
const shown = (text: string) => JSON.stringify(text.length > 64 ? `${text.slice(0, 64)}…` : text)
