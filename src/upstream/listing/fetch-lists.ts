import { type Capabilities, declaresExtension, skillsExtension } from '../../core/call.ts'
import type { Definition, Kind } from '../../core/entry.ts'
import { ServerError, ToolwayError } from '../../core/errors.ts'
import type { Log } from '../../core/log.ts'
import { malformedSkill } from '../../core/skills.ts'
import type { ServerFinding } from '../../core/source-status.ts'
import type { Descriptors } from '../../core/stores.ts'
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

/** The lists of a server. */
export type ListName = 'tools' | 'resources' | 'templates' | 'prompts' | 'skills'

export interface ServerLists extends Required<Pick<Descriptors, ListName>>, Pick<Descriptors, 'exactSchemas'> {
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
  const { server, limits = defaultListLimits, log } = options
  const broken: ToolwayError[] = []
  const declared = listSpecs.filter(({ capability }) => declaresCapability(open.handshake.capabilities, capability))
  const all = await Promise.all(
    declared.map(async (spec) => {
      const malformed = (tool: Definition) => needsSchema(tool) ?? badHeaders(open, tool)
      const reader = new ListReader(spec.kind === 'tool' ? { ...spec, malformed } : spec, limits)
      const outcome = await readPages(open, spec, reader, options)
      options.spent?.(reader.costMs)
      if (outcome instanceof ToolwayError) broken.push(outcome)
      return { spec, reader, outcome, entries: reader.definitions() }
    }),
  )
  const [first] = broken
  const { usable } = open.connection.transport
  // If the connection is lost, that is reported instead.
  for (const { message } of usable ? broken : [])
    log.warn({ server, reason: message }, 'the server failed to return a list')
  if (first && (broken.length === all.length || !usable)) throw first
  const read = all.filter(({ outcome }) => outcome !== 'absent')
  const complete = read.filter(({ outcome }) => outcome === 'complete')
  const exact = Object.fromEntries(read.flatMap(({ reader }) => [...reader.exactSchemas]))
  const ttls = complete.flatMap(({ spec, reader }) => (reader.ttlMs === undefined ? [] : [[spec.kind, reader.ttlMs]]))
  return {
    ...{ tools: [], resources: [], templates: [], prompts: [], skills: [] },
    ...Object.fromEntries(read.map(({ spec, entries }) => [spec.list, entries])),
    failed: read.flatMap(({ spec, outcome, entries }) => failureOf(spec, outcome, entries.length) ?? []),
    exactSchemas: Object.keys(exact).length > 0 ? exact : undefined,
    findings: complete.flatMap(({ reader }) => reader.findings()),
    bytes: read.reduce((sum, { reader }) => sum + reader.bytes, 0),
    // Only the stateless protocol defines TTLs.
    ttls: open.handshake.era === 'modern' ? Object.fromEntries(ttls) : {},
  }
}

export type ListTtls = Readonly<Partial<Record<Kind, number>>>

/** How the reading of a list ended; an error if a request got no usable response. */
type ReadOutcome = 'complete' | 'absent' | Pick<FailedList, 'reason'> | ToolwayError

function failureOf({ kind, method }: ListSpec, outcome: ReadOutcome, entries: number): FailedList | undefined {
  if (typeof outcome === 'string') return undefined
  const some = entries > 0 ? `only the first ${withCommas(entries)} entries: ` : ''
  if (!(outcome instanceof ToolwayError)) return { kind, method, reason: some + outcome.reason }
  return { kind, method, reason: some + outcome.message.replace(/\.$/, ''), limit: LimitExceeded.in(outcome) }
}

/** Each list, and the capability that declares it. */
const listSpecs: readonly (ListSpec & { readonly list: ListName; readonly capability: string })[] = [
  { list: 'tools', capability: 'tools', kind: 'tool', method: 'tools/list', field: 'tools', key: 'name' },
  {
    ...{ list: 'resources', capability: 'resources', kind: 'resource' },
    ...{ method: 'resources/list', field: 'resources', key: 'uri' },
  },
  {
    ...{ list: 'templates', capability: 'resources', kind: 'template' },
    ...{ method: 'resources/templates/list', field: 'resourceTemplates', key: 'uriTemplate' },
  },
  { list: 'prompts', capability: 'prompts', kind: 'prompt', method: 'prompts/list', field: 'prompts', key: 'name' },
  {
    ...{ list: 'skills', capability: skillsExtension, kind: 'skill', malformed: malformedSkill },
    ...{ method: 'skills/list', field: 'skills', key: 'uri' },
  },
]

const declaresCapability = (capabilities: Capabilities, name: string): boolean =>
  Boolean(capabilities[name]) || declaresExtension(capabilities, name)

/** How many characters of a server's error are searched for secrets. */
const maxListErrorRead = 2_000

/** Reads all pages until one fails. */
async function readPages(
  open: InitializedConnection,
  { kind, method }: ListSpec,
  reader: ListReader,
  { server, capabilities, signal, redact = (text) => text, log }: FetchListsOptions,
): Promise<ReadOutcome> {
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
