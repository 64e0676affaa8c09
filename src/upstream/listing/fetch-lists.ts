import type { Capabilities } from '../../core/call.ts'
import type { Definition } from '../../core/entry.ts'
import { ServerError } from '../../core/errors.ts'
import { Json } from '../../core/json.ts'
import type { Log } from '../../core/log.ts'
import { isRecord } from '../../lib/is-record.ts'
import { methodNotFound } from '../../wire/message.ts'
import { invalidParamHeaders } from '../../wire/param-headers.ts'
import type { InitializedConnection } from '../connection/handshake.ts'
import { encodeRequest, type RequestSpec } from '../requests/encode-request.ts'
import { type ListedKind, repairedDefinition, visibleDefinition } from './definitions.ts'

export interface ServerLists {
  readonly tools: readonly Definition[]
  readonly resources: readonly Definition[]
  readonly templates: readonly Definition[]
  readonly prompts: readonly Definition[]
  /** Input schemas with numbers that a double cannot hold, by tool name, as JSON with all digits. */
  readonly exactSchemas: Readonly<Record<string, string>> | undefined
  /** Lists that the server declared but failed to return. */
  readonly failed: readonly string[]
}

/** Limits for a server that repeats a cursor or never stops sending pages. */
const maxPages = 1_000
const maxItems = 50_000
const maxBytes = 64 * 1024 * 1024
const maxNamed = 20

/** Fetches every list that the server's capabilities declare. A failed list does not affect the others. */
export async function fetchLists(
  open: InitializedConnection,
  options: { server: string; capabilities: Capabilities; log: Log; signal: AbortSignal },
): Promise<ServerLists> {
  const { server, log, signal } = options
  const { capabilities } = open.handshake
  const failed: string[] = []
  const exactSchemas = new Map<string, string>()

  const list = async (
    method: string,
    kind: ListedKind,
    field: string,
    key: string,
    malformed = (_: Definition): string | undefined => undefined,
  ) => {
    try {
      const { items, exact, isCut } = await allPages(open, method, field, options)
      if (isCut) log.warn({ server, method, kept: items.length }, 'list too long; truncated')
      const kept = new Map<unknown, Definition>()
      let dropped = 0
      for (const item of items) {
        const reason =
          needsText(item, key) ??
          malformed(item) ??
          visibleDefinition(kind, item).problem ??
          (kept.has(item[key]) ? 'duplicate name' : undefined)
        const digits = exact.get(item)
        if (!reason && digits !== undefined) exactSchemas.set(item[key] as string, digits)
        if (!reason) kept.set(item[key], repairedDefinition(kind, item))
        else if (++dropped <= maxNamed)
          log.warn({ server, method, reason, item: label(item) }, 'dropped a malformed definition')
      }
      if (dropped > maxNamed)
        log.warn({ server, method, dropped }, 'dropped malformed definitions; only the first ones are logged')
      return [...kept.values()]
    } catch (error) {
      if (error instanceof ServerError && error.error.value.code === methodNotFound) return []
      if (signal.aborted || !(error instanceof ServerError)) throw error
      failed.push(method)
      // Log only the code and the beginning of the message: the error's data can be anything, of any size.
      const { code, message } = error.error.value
      log.warn({ server, method, code, reason: String(message).slice(0, 200) }, 'the server failed to return a list')
      return []
    }
  }
  const [tools, resources, templates, prompts] = await Promise.all([
    capabilities.tools
      ? list('tools/list', 'tool', 'tools', 'name', (tool) => needsSchema(tool) ?? badHeaders(open, tool))
      : [],
    capabilities.resources ? list('resources/list', 'resource', 'resources', 'uri') : [],
    capabilities.resources ? list('resources/templates/list', 'template', 'resourceTemplates', 'uriTemplate') : [],
    capabilities.prompts ? list('prompts/list', 'prompt', 'prompts', 'name') : [],
  ])
  const exact = exactSchemas.size > 0 ? Object.fromEntries(exactSchemas) : undefined
  return { tools, resources, templates, prompts, exactSchemas: exact, failed }
}

type ListOptions = Pick<RequestSpec, 'capabilities' | 'signal'>

async function allPages(open: InitializedConnection, method: string, field: string, options: ListOptions) {
  const { capabilities, signal } = options
  const items: Definition[] = []
  const exact = new Map<Definition, string>()
  const seen = new Set<string>()
  let members: readonly Buffer[] = []
  let bytes = 0
  while (seen.size < maxPages && items.length < maxItems && bytes < maxBytes) {
    const request = encodeRequest(open, { method, members, capabilities, signal, repeatable: true })
    const { result } = await open.connection.request(request)
    const page = Json.raw<Record<string, unknown>>(result)
    const body = page.value
    bytes += result.length
    for (const item of Array.isArray(body[field]) ? body[field] : []) items.push(item)
    if (page.exact !== body) noteExactSchemas(body[field], page.exact[field], exact)
    const next = body.nextCursor
    const isLast = typeof next !== 'string' || next === '' || seen.has(next)
    if (isLast) return { items: items.slice(0, maxItems), exact, isCut: items.length > maxItems }
    seen.add(next)
    members = [Buffer.from(`"cursor":${JSON.stringify(next)}`)]
  }
  return { items: items.slice(0, maxItems), exact, isCut: true }
}

function noteExactSchemas(items: unknown, exactItems: unknown, noted: Map<Definition, string>): void {
  if (!Array.isArray(items) || !Array.isArray(exactItems)) return
  for (const [index, item] of items.entries()) {
    const digits = JSON.stringify(exactItems[index]?.inputSchema)
    if (digits !== JSON.stringify(item?.inputSchema)) noted.set(item, digits)
  }
}

function needsSchema({ inputSchema }: Definition): string | undefined {
  if (!isRecord(inputSchema)) return 'inputSchema is not an object'
  const { type = 'object' } = inputSchema
  return [type].flat().includes('object') ? undefined : 'inputSchema does not describe an object'
}

/** Why a tool's header annotations are invalid, if they are. Over HTTP, such a tool must not be offered. */
const badHeaders = ({ connection, handshake }: InitializedConnection, { inputSchema }: Definition) =>
  handshake.era === 'modern' && connection.transport.kind === 'http' ? invalidParamHeaders(inputSchema) : undefined

function needsText(item: Definition, field: string): string | undefined {
  if (typeof item !== 'object' || item === null) return 'not an object'
  const text = item[field]
  return typeof text === 'string' && text !== '' ? undefined : `${field} is missing or empty`
}

const label = (item: Definition): string => JSON.stringify(item)?.slice(0, 120) ?? 'undefined'
