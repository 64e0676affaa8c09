import type { Definition } from '../core/entry.ts'
import { ServerError } from '../core/errors.ts'
import { Json } from '../core/json.ts'
import type { Log } from '../core/log.ts'
import type { Connection } from './connection.ts'

/** What a server offers, list by list. */
export interface Offer {
  readonly tools: readonly Definition[]
  readonly resources: readonly Definition[]
  readonly templates: readonly Definition[]
  readonly prompts: readonly Definition[]
  /** Lists that the server has but could not give. */
  readonly failed: readonly string[]
}

/** A server that pages for ever, or repeats a cursor, must not hold us. */
const maxPages = 1_000
const methodNotFound = -32601

/** Asks for every list that the server's capabilities name. One that fails loses only itself. */
export async function discover(
  connection: Connection,
  capabilities: Readonly<Record<string, unknown>>,
  options: { server: string; log: Log; signal: AbortSignal },
): Promise<Offer> {
  const { server, log, signal } = options
  const failed: string[] = []

  const list = async (
    method: string,
    field: string,
    key: string,
    malformed = (_: Definition): string | undefined => undefined,
  ) => {
    try {
      const items = await allPages(connection, method, field, signal)
      const seen = new Set<unknown>()
      return items.filter((item) => {
        const reason =
          needsText(item, key) ?? malformed(item) ?? (seen.has(item[key]) ? 'its name is listed twice' : undefined)
        if (reason) log.warn({ server, method, reason, item: label(item) }, 'dropped a malformed definition')
        else seen.add(item[key])
        return !reason
      })
    } catch (error) {
      if (error instanceof ServerError && error.error.value.code === methodNotFound) return []
      if (signal.aborted || !(error instanceof ServerError)) throw error
      failed.push(method)
      log.warn({ server, method, error: error.error.value }, 'the server could not give this list')
      return []
    }
  }
  const [tools, resources, templates, prompts] = await Promise.all([
    capabilities.tools ? list('tools/list', 'tools', 'name', needsSchema) : [],
    capabilities.resources ? list('resources/list', 'resources', 'uri') : [],
    capabilities.resources ? list('resources/templates/list', 'resourceTemplates', 'uriTemplate') : [],
    capabilities.prompts ? list('prompts/list', 'prompts', 'name') : [],
  ])
  return { tools, resources, templates, prompts, failed }
}

async function allPages(connection: Connection, method: string, field: string, signal: AbortSignal) {
  const items: Definition[] = []
  const seen = new Set<string>()
  let cursor: string | undefined
  for (let page = 0; page < maxPages; page++) {
    const params = cursor === undefined ? undefined : Json.of({ cursor }).bytes
    const body = Json.raw<Record<string, unknown>>(await connection.request({ method, params: () => params, signal }))
    const listed = body.value[field]
    for (const item of Array.isArray(listed) ? listed : []) items.push(item)
    const next = body.value.nextCursor
    if (typeof next !== 'string' || next === '' || seen.has(next)) break
    seen.add(next)
    cursor = next
  }
  return items
}

function needsSchema({ inputSchema }: Definition): string | undefined {
  const isObject = typeof inputSchema === 'object' && inputSchema !== null && !Array.isArray(inputSchema)
  return isObject ? undefined : 'inputSchema is not an object'
}

function needsText(item: Definition, field: string): string | undefined {
  if (typeof item !== 'object' || item === null) return 'it is not an object'
  const text = item[field]
  return typeof text === 'string' && text !== '' ? undefined : `${field} is not a text`
}

const label = (item: Definition): string => JSON.stringify(item)?.slice(0, 120) ?? 'undefined'
