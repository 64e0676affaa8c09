import type { ServerConfig } from '../config/schema.ts'
import type { Call, Handler } from '../core/call.ts'
import type { Descriptors } from '../core/descriptors.ts'
import type { Definition, Entry, Kind, Traits } from '../core/entry.ts'
import { Json } from '../core/json.ts'
import type { Result, ResultBody } from '../core/result.ts'
import { matches } from '../core/wildcard.ts'
import { peekBoolean } from '../wire/scan.ts'
import type { Request } from './connection.ts'
import { servedResult } from './served-uris.ts'

/** Sends one request over whatever line the server has now. */
export type Send = (request: Request) => Promise<Buffer>

export interface EntryOptions {
  readonly server: string
  readonly config: ServerConfig
  readonly timeoutMs: number
  readonly send: Send
  /** The form under which callers know a URI of this server. */
  servedUri(uri: string): string
}

/** Turns what a server says it offers into entries whose `run` forwards to it. */
export function forwardedEntries(descriptors: Descriptors, options: EntryOptions): Entry[] {
  const completes = descriptors.capabilities.completions !== undefined
  const { include, exclude } = options.config.tools
  const wanted = (tool: Definition) => {
    const name = tool.name as string
    return include.some((pattern) => matches(pattern, name)) && !exclude.some((pattern) => matches(pattern, name))
  }
  const entry = (kind: Kind, key: string, head: (name: string) => Head, ref?: (name: string) => object) => {
    return (definition: Definition): Entry => {
      const name = definition[key] as string
      return {
        kind,
        server: options.server,
        name,
        definition,
        traits: traitsOf(name, definition, kind, options),
        run: forward(head(name), options),
        ...(ref && completes && { complete: completion(ref(name), options) }),
      }
    }
  }
  const named = (method: string) => (name: string) => fixedHead(method, `{"name":${JSON.stringify(name)},"arguments":`)
  return [
    ...descriptors.tools.filter(wanted).map(entry('tool', 'name', named('tools/call'))),
    ...descriptors.resources.map(entry('resource', 'uri', readHead)),
    ...descriptors.templates.map(entry('template', 'uriTemplate', readHead, (uri) => ({ type: 'ref/resource', uri }))),
    ...descriptors.prompts.map(entry('prompt', 'name', named('prompts/get'), (name) => ({ type: 'ref/prompt', name }))),
  ]
}

/** What stands before `_meta` in the params of a request; prepared once where the call cannot change it. */
interface Head {
  readonly method: string
  bytes(call: Call): readonly Buffer[]
}

const fixedHead = (method: string, text: string): Head => {
  const start = Buffer.from(text)
  return { method, bytes: (call) => [start, call.input.arguments.bytes] }
}

const readHead = (name: string): Head => ({
  method: 'resources/read',
  bytes: (call) => [Buffer.from(`{"uri":${JSON.stringify(call.input.uri ?? name)}`)],
})

const forward = (head: Head, options: EntryOptions): Handler => {
  return async (call) => {
    const bytes = await options.send({
      method: head.method,
      params: (progressToken) => Buffer.concat([...head.bytes(call), metaTail(call, progressToken)]),
      signal: call.signal,
      // The door that the call came through knows under which token its caller expects this.
      progress: (params) => call.peer.notify('notifications/progress', params),
    })
    return resultFrom(bytes, options)
  }
}

const completion = (ref: object, options: EntryOptions): Handler => {
  return async (call) => {
    const params = Json.of({ ref, ...call.input.arguments.value }).bytes
    const bytes = await options.send({ method: 'completion/complete', params: () => params, signal: call.signal })
    return { body: Json.raw(bytes), isError: false }
  }
}

const resultFrom = (bytes: Buffer, { servedUri }: EntryOptions): Result => ({
  body: servedResult(Json.raw<ResultBody>(bytes), servedUri),
  isError: peekBoolean(bytes, 'isError'),
})

/** The caller's `_meta` goes on, but for what belongs to one hop (progress tokens) or to us alone. */
function metaTail(call: Call, progressToken: number): Buffer {
  const meta: Record<string, unknown> = {}
  for (const [key, value] of Object.entries(call.input.meta)) {
    if (key !== 'progressToken' && !key.startsWith('dev.toolway/')) meta[key] = value
  }
  if (call.input.meta.progressToken !== undefined) meta.progressToken = progressToken
  return Object.keys(meta).length === 0 ? closing : Buffer.from(`,"_meta":${JSON.stringify(meta)}}`)
}
const closing = Buffer.from('}')

/** The operator's word counts; the server's own annotations only where the operator trusts them. */
function traitsOf(name: string, definition: Definition, kind: Kind, { config, timeoutMs }: EntryOptions): Traits {
  const annotations = config.trustAnnotations && kind === 'tool' ? (definition.annotations as Annotations) : undefined
  const listed = (patterns: readonly string[]) => patterns.some((pattern) => matches(pattern, name))
  const readOnly = kind !== 'tool' || listed(config.readTools) || annotations?.readOnlyHint === true
  return {
    readOnly,
    idempotent: readOnly || listed(config.idempotentTools) || annotations?.idempotentHint === true,
    timeoutMs: config.toolTimeouts[name] ?? timeoutMs,
  }
}

type Annotations = { readOnlyHint?: unknown; idempotentHint?: unknown } | undefined
