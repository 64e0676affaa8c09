import type { Definition, Kind } from '../../core/entry.ts'
import { ServerError, ToolwayError } from '../../core/errors.ts'
import type { Log } from '../../core/log.ts'
import type { ServerFinding } from '../../core/source-status.ts'
import { isRecord } from '../../lib/is-record.ts'
import { quote } from '../../lib/message-text.ts'
import { methodNotFound } from '../../wire/message.ts'
import { invalidParamHeaders } from '../../wire/param-headers.ts'
import type { InitializedConnection } from '../connection/handshake.ts'
import { encodeRequest, type RequestSpec } from '../requests/encode-request.ts'
import { LimitExceeded } from '../transports/transport-errors.ts'
import {
  defaultListLimits,
  type ListLimits,
  ListReader,
  type ListSpec,
  MalformedList,
  withCommas,
} from './list-reader.ts'

export interface ServerLists {
  readonly tools: readonly Definition[]
  readonly resources: readonly Definition[]
  readonly templates: readonly Definition[]
  readonly prompts: readonly Definition[]
  /** Input schemas with numbers that a double cannot hold, by tool name, as JSON with all digits. */
  readonly exactSchemas: Readonly<Record<string, string>> | undefined
  /** Lists that the server declared but failed to return completely. The pages before the failure are kept. */
  readonly failed: readonly FailedList[]
  /** What was shortened or left out. */
  readonly findings: readonly ServerFinding[]
  /** The number of bytes of all lists. */
  readonly bytes: number
  /** How long the server allows caching each list, if it says so. */
  readonly ttls: ListTtls
}

export interface FailedList {
  readonly kind: Kind
  readonly method: string
  readonly reason: string
  /** The limit that a page exceeded, if that is the reason. */
  readonly limit?: LimitExceeded | undefined
}

export interface FetchListsOptions extends Pick<RequestSpec, 'capabilities' | 'signal'> {
  readonly server: string
  readonly limits?: ListLimits | undefined
  /** Removes secrets from a server's error. */
  redact?(text: string): string
  /** Called for each list that was read, even if only in part, with its `costMs`. */
  spent?(costMs: number): void
  readonly log: Log
}

/**
 * Fetches every list that the server's capabilities declare. A failed list does not affect the others. Rejects if the
 * connection or the credential failed, or if no list could be read.
 */
export async function fetchLists(open: InitializedConnection, options: FetchListsOptions): Promise<ServerLists> {
  const { capabilities } = open.handshake
  const failed: FailedList[] = []
  const read = new Map<string, ListReader>()
  const broken: ToolwayError[] = []
  let answered = 0

  const list = async (spec: ListSpec): Promise<readonly Definition[]> => {
    const { kind, method } = spec
    const reader = new ListReader(spec, options.limits ?? defaultListLimits)
    const outcome = await readPages(open, spec, reader, options)
    options.spent?.(reader.costMs)
    const isBroken = outcome instanceof ToolwayError
    if (isBroken) broken.push(outcome)
    else answered++
    if (outcome === 'absent') return []
    read.set(method, reader)
    const entries = reader.definitions()
    if (outcome !== 'complete') {
      const some = entries.length > 0 ? `only the first ${withCommas(entries.length)} entries: ` : ''
      const reason = isBroken ? outcome.message.replace(/\.$/, '') : outcome.reason
      failed.push({ kind, method, reason: some + reason, limit: isBroken ? LimitExceeded.in(outcome) : undefined })
    }
    return entries
  }
  const [tools, resources, templates, prompts] = await Promise.all([
    capabilities.tools
      ? list({ ...listSpecs.tool, malformed: (tool) => needsSchema(tool) ?? badHeaders(open, tool) })
      : [],
    capabilities.resources ? list(listSpecs.resource) : [],
    capabilities.resources ? list(listSpecs.template) : [],
    capabilities.prompts ? list(listSpecs.prompt) : [],
  ])
  const [first] = broken
  if (first && (answered === 0 || !open.connection.transport.usable)) throw first
  for (const { message } of broken)
    options.log.warn({ server: options.server, reason: message }, 'the server failed to return a list')
  const readers = Object.values(listSpecs).flatMap(({ method }) => read.get(method) ?? [])
  for (const { method } of failed) read.delete(method)
  const exact = Object.fromEntries(readers.flatMap(({ exactSchemas }) => [...exactSchemas]))
  return {
    ...{ tools, resources, templates, prompts, failed },
    exactSchemas: Object.keys(exact).length > 0 ? exact : undefined,
    findings: [...read.values()].flatMap((reader) => reader.findings()),
    bytes: readers.reduce((sum, { bytes }) => sum + bytes, 0),
    // Only the stateless protocol defines TTLs.
    ttls: open.handshake.era === 'modern' ? ttlsOf(read) : {},
  }
}

export type ListTtls = Readonly<Partial<Record<Kind, number>>>

function ttlsOf(readers: ReadonlyMap<string, ListReader>): ListTtls {
  const ttls = Object.values(listSpecs).map(({ kind, method }) => [kind, readers.get(method)?.ttlMs] as const)
  return Object.fromEntries(ttls.filter(([, ttlMs]) => ttlMs !== undefined))
}

const listSpecs = {
  tool: { method: 'tools/list', kind: 'tool', field: 'tools', key: 'name' },
  resource: { method: 'resources/list', kind: 'resource', field: 'resources', key: 'uri' },
  template: {
    method: 'resources/templates/list',
    kind: 'template',
    field: 'resourceTemplates',
    key: 'uriTemplate',
  },
  prompt: { method: 'prompts/list', kind: 'prompt', field: 'prompts', key: 'name' },
} as const satisfies Record<string, ListSpec>

/** How many characters of a server's error are searched for secrets. */
const maxListErrorRead = 2_000

/** Reads all pages until one fails. Returns the error of a request that got no usable response. */
async function readPages(
  open: InitializedConnection,
  { kind, method }: ListSpec,
  reader: ListReader,
  { server, capabilities, signal, redact = (text) => text, log }: FetchListsOptions,
): Promise<'complete' | 'absent' | Pick<FailedList, 'reason'> | ToolwayError> {
  try {
    let members: readonly Buffer[] = []
    for (;;) {
      const request = encodeRequest(open, { method, members, capabilities, signal, repeatable: true })
      const { result } = await open.connection.request(request)
      const cursor = reader.page(result)
      if (cursor === undefined) return 'complete'
      members = [Buffer.from(`"cursor":${JSON.stringify(cursor)}`)]
    }
  } catch (error) {
    if (error instanceof MalformedList) {
      log.warn({ server, method, reason: error.message }, 'the server failed to return a list')
      return { reason: error.message }
    }
    if (error instanceof ToolwayError && error.code !== 'AUTH_REQUIRED') return error
    if (!(error instanceof ServerError)) throw error
    // Log only the code and the beginning of the message: the error's data can be anything, of any size.
    const { code, message } = error.error.value
    // Servers often declare resources or prompts and have none. One that declares tools has them.
    if (code === methodNotFound && kind !== 'tool') return 'absent'
    log.warn({ server, method, code, reason: String(message).slice(0, 200) }, 'the server failed to return a list')
    // Callers see the reason. Redact before it is shortened, because that may split a secret.
    return { reason: `error ${code} ${quote(redact(String(message).slice(0, maxListErrorRead)))}` }
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
