import type { IncomingMessage, ServerResponse } from 'node:http'
import type * as z from 'zod'
import type { Caller } from '../../core/call.ts'
import type { ChatDesk } from './chat.ts'
import type { Credentials, Guest } from './credentials.ts'
import type { Events } from './events.ts'
import type { Admin } from './port.ts'

/** What routes work with. */
export interface Desk {
  readonly admin: Admin
  readonly credentials: Credentials
  readonly events: Events
  readonly chat: ChatDesk
  /** The OpenAPI document. */
  document(): object
  /** Ends a stream that outlives its credential. */
  watch(guest: Guest, response: ServerResponse): void
}

interface Request<Query, Body> {
  /** What the path names: a server, a tool, a call. */
  readonly target: string
  readonly query: Query
  readonly body: Body
  /** The body as it came, where the route has one. */
  readonly bytes?: Buffer | undefined
  readonly request: IncomingMessage
  readonly response: ServerResponse
  /** Aborted when the client is gone. */
  readonly signal: AbortSignal
}

/** A request that was let in. */
export interface Asked<Query = unknown, Body = unknown> extends Request<Query, Body> {
  readonly guest: Guest
  readonly caller: Caller
}

interface Described {
  readonly method: 'GET' | 'POST' | 'DELETE'
  /** Below `/admin/api/`, with at most one name in braces. */
  readonly path: string
  readonly summary: string
  /** What it answers with; nothing at all (204) where it is left out. */
  readonly answer?: z.ZodType
  /** It answers with a stream of events instead. */
  readonly stream?: true
}

interface Inputs<Query, Body> {
  readonly query?: Query
  readonly body?: Body
  /** Bytes that the body may have; as much as at the MCP door otherwise. */
  readonly maxBody?: number
}

type Output<T> = T extends z.ZodType ? z.output<T> : undefined

/** For whoever has a credential, or for admins alone. */
interface Guarded<Query, Body> extends Described, Inputs<Query, Body> {
  readonly access: 'guest' | 'admin'
  run(asked: Asked<Output<Query>, Output<Body>>, desk: Desk): unknown
}

/** For whoever reaches the door. */
interface Open<Query, Body> extends Described, Inputs<Query, Body> {
  readonly access: 'anyone'
  run(asked: Request<Output<Query>, Output<Body>>, desk: Desk): unknown
}

export type Route = Guarded<z.ZodObject | undefined, z.ZodObject | undefined> | Open<undefined, z.ZodObject | undefined>

/** One line of the table: what is asked and answered, who may ask, and what happens. */
export const guarded = <
  Query extends z.ZodObject | undefined = undefined,
  Body extends z.ZodObject | undefined = undefined,
>(
  route: Guarded<Query, Body>,
): Route => route as unknown as Route

export const open = <Body extends z.ZodObject | undefined = undefined>(route: Open<undefined, Body>): Route =>
  route as unknown as Route

/** The answer was given by the route itself. */
export const answered = Symbol('answered')
