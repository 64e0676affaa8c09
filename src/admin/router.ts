import type { IncomingMessage, ServerResponse } from 'node:http'
import type * as z from 'zod'
import type { Caller } from '../core/call.ts'
import { ToolwayError } from '../core/errors.ts'
import type { Log } from '../core/log.ts'
import { Json } from '../json/json.ts'
import { extentOf, maxDepth } from '../json/json-text.ts'
import { jsonValue } from '../json/parse-json.ts'
import { quote } from '../lib/message-text.ts'
import type { AuthIdentity } from '../serve/auth/identity.ts'
import { apiCodeOf, HttpError, methodNotAllowed, rpcCodes, toHttpError } from '../serve/errors.ts'

export interface AdminUser {
  readonly caller: Caller
  readonly identity: AuthIdentity
  /** Authenticates the credential again. Rejects if it is no longer valid. */
  reauthenticate(): Promise<AuthIdentity>
}

/** Finds routes by their path below `/admin/api/`. Literal paths take precedence over those with a parameter. */
export function createRouter(routes: readonly Route[]) {
  const patterns = [...Map.groupBy(routes, ({ path }) => path)]
    .sort(([a], [b]) => Number(a.includes('{')) - Number(b.includes('{')))
    .map(([path, sharing]) => ({
      pattern: new RegExp(`^${path.replace('.', '\\.').replace(/\{\w+\}/, '([^/]+)')}$`),
      sharing,
    }))

  return (method: string, path: string): { readonly route: Route; readonly target: string } => {
    for (const { pattern, sharing } of patterns) {
      const match = pattern.exec(path)
      if (!match) continue
      const route = sharing.find((one) => one.method === method || (method === 'HEAD' && supportsHead(one)))
      if (route) return { route, target: decodeTarget(match[1]) }
      throw methodNotAllowed(method, sharing.map((one) => one.method).join(', '))
    }
    throw routeNotFound()
  }
}

/** Whether a route supports HEAD. Streams do not, because they would never end. */
const supportsHead = ({ method, stream }: Route) => method === 'GET' && !stream

/** The path parameter; empty if the route has none. */
function decodeTarget(text = ''): string {
  try {
    return decodeURIComponent(text)
  } catch {
    throw routeNotFound()
  }
}

const routeNotFound = () =>
  new HttpError(404, rpcCodes.request, 'Not found: GET /admin/api/openapi.json lists the available routes.')

export interface RouteContext {
  /** Closes a stream when its credential becomes invalid. */
  watch(user: AdminUser, response: ServerResponse): void
  /** Streams events as server-sent events. An error after the first one becomes an event of the kind `error`. */
  stream(response: ServerResponse, events: AsyncIterable<{ readonly kind: string }>): Promise<void>
}

interface Request<Query, Body> {
  /** The path parameter: a server's or tool's name, or a call's id. */
  readonly target: string
  readonly query: SchemaOutput<Query>
  readonly body: SchemaOutput<Body>
  readonly bytes?: Buffer
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly signal: AbortSignal
}

type SchemaOutput<T> = T extends z.ZodType ? z.output<T> : undefined

export interface Route extends RouteDetails<z.ZodObject | undefined, z.ZodObject | undefined, never> {
  readonly access: 'anyone' | 'guest' | 'admin'
  readonly method: 'GET' | 'POST' | 'DELETE'
  /** Path below `/admin/api/`, with at most one parameter in braces. */
  readonly path: string
  readonly summary: string
}

interface RouteDetails<Query, Body, Input> {
  readonly query?: Query
  readonly body?: Body
  /** Maximum size of the body; by default, the limit for the MCP endpoint. */
  readonly maxBody?: number
  /** The schema of the response. A route without one responds with 204. */
  readonly answer?: z.ZodType
  readonly stream?: true
  readonly mediaTypes?: readonly string[]
  run(request: Input, context: RouteContext): unknown
}

/** Creates a function that defines routes. It infers the types of the query and the body from their schemas. */
const routeFor =
  <User>(access: Route['access']) =>
  <Query extends z.ZodObject | undefined = undefined, Body extends z.ZodObject | undefined = undefined>(
    method: Route['method'],
    path: string,
    summary: string,
    details: RouteDetails<Query, Body, Request<Query, Body> & User>,
  ): Route => ({ access, method, path, summary, ...details })

interface Authenticated {
  readonly user: AdminUser
  readonly caller: Caller
}

export const publicRoute = routeFor<unknown>('anyone')
export const userRoute = routeFor<Authenticated>('guest')
export const adminRoute = routeFor<Authenticated>('admin')

/** Returned by a route handler that has already sent the response. */
export const responseSent = Symbol('answered')

/** Converts what an operation threw. A conflict with a change by somebody else has a status of its own. */
export function refusalOf(thrown: unknown, log: Log): HttpError {
  const isConflict = thrown instanceof ToolwayError && thrown.details.auditReason === 'conflict'
  return isConflict ? new HttpError(409, rpcCodes.request, thrown.message) : toHttpError(thrown, log)
}

export const jsonBytes = (value: unknown): Buffer => Buffer.from(JSON.stringify(value))

export function failureEvent(thrown: unknown, log: Log) {
  const refusal = refusalOf(thrown, log)
  return { kind: 'error', code: apiCodeOf(refusal), message: refusal.message } as const
}

/** Parses and validates a URL's query. Parameters with an empty value count as missing. */
export function readQuery(url: string, schema: z.ZodObject | undefined): unknown {
  const start = url.indexOf('?')
  const params = new URLSearchParams(start < 0 ? '' : url.slice(start + 1))
  if (schema === undefined) return undefined
  const values: Record<string, string> = {}
  for (const [name, value] of params) {
    if (value === '') continue
    if (Object.hasOwn(values, name)) throw invalidRequest(`The query parameter ${quoteKey(name)} occurs twice.`)
    // Define the property instead of assigning it: an assignment to __proto__ would not create a property.
    Object.defineProperty(values, name, { value, enumerable: true })
  }
  return validateInput(schema, values, 'query')
}

export const parseInput = (bytes: Buffer, schema: z.ZodObject): unknown =>
  validateInput(schema, parseBody(bytes), 'body')

/** A body's arguments with their original bytes. Throws if the body is ambiguous, for example with duplicate keys. */
export function bodyArguments(bytes: Buffer | undefined): Json<Record<string, unknown>> {
  try {
    const given = bytes && Json.parse(bytes.toString('utf8')).member('arguments')
    return (given ?? Json.of({})) as Json<Record<string, unknown>>
  } catch (error) {
    throw invalidRequest(`Invalid body: ${(error as Error).message}.`)
  }
}

function validateInput(schema: z.ZodObject, value: unknown, what: string): unknown {
  const result = schema.safeParse(value)
  if (result.success) return result.data
  const sentences = result.error.issues.slice(0, 3).map(({ path, message, code, ...issue }) => {
    const name = path.length === 0 ? `The ${what}` : quoteKey(path.join('.'))
    const unknown = 'keys' in issue ? (issue.keys as string[]).slice(0, 3).map(quoteKey).join(', ') : undefined
    return unknown === undefined ? `${name}: ${message}` : `${name} has unknown keys: ${unknown}`
  })
  throw invalidRequest(`${sentences.join('; ')}.`)
}

function parseBody(bytes: Buffer): unknown {
  // Limit the depth, because the arguments are later serialized again by a recursive function.
  if (extentOf(bytes).depth > maxDepth) throw invalidRequest(`The body is nested more than ${maxDepth} levels deep.`)
  try {
    return jsonValue(bytes.toString('utf8'))
  } catch {
    throw invalidRequest('The body is not valid JSON.')
  }
}

const invalidRequest = (sentence: string) => new HttpError(400, rpcCodes.params, sentence)

const quoteKey = (text: string) => quote(text, 64)
