import { createHash } from 'node:crypto'
import { basename } from 'node:path'
import * as z from 'zod'
import type { ServerConfig } from '../../config/schema.ts'
import { isRandom } from '../../core/secret-name.ts'
import { parseJson } from '../../json/parse-json.ts'
import { asRecord } from '../../lib/is-record.ts'

/**
 * The file format version. Increment it with each change, so that an older Toolway does not overwrite newer files. Files
 * without blocks have version 1, so that Toolway 0.1 can use them during an upgrade.
 */
const recordVersion = 2

export const pinKinds = ['tool', 'prompt', 'instructions'] as const
export type PinKind = (typeof pinKinds)[number]

const time = z.number().nonnegative()
const hash = z.string().regex(/^[0-9a-f]{64}$/)

const snapshot = z.object({
  hash,
  /** When the definition was first seen. In an approval, the time of the approval. */
  at: time,
  /** A truncated copy of the definition, for people to compare. */
  definition: z.record(z.string(), z.unknown()).optional(),
  /** The scanner's findings, whether any of them has high severity, and the scanner version. */
  flags: z.array(z.string()),
  high: z.boolean(),
  scanner: z.number(),
})
const approval = snapshot.extend({ by: z.enum(['first sight', 'operator']) })

/** An operator's decision that a definition must not be used, and the time at which an approval lifted it. */
const block = z.object({ hash, at: time, lifted: time.optional() })

const pin = z.object({
  kind: z.enum(pinKinds),
  name: z.string(),
  approved: z.array(approval),
  pending: z.array(snapshot),
  seen: z.object({ hash, at: time }),
  blocked: z.array(block).optional(),
})

const origin = z.object({ hash: z.string(), text: z.string(), at: time })

const recordSchema = z.object({
  version: z.union([z.literal(1), z.literal(recordVersion)]),
  server: z.string(),
  /** The server's origins, oldest first. */
  origins: z.array(origin),
  /** When an operator last approved everything from this server. */
  acknowledged: time,
  /** When the pins were lost, or 0. Until an operator acknowledges the loss, first sight does not count as approval. */
  distrusted: time,
  /** Whether the first listing is complete, so that further definitions are new. Absent in files of Toolway 0.2. */
  listed: z.boolean().optional(),
  pins: z.array(pin),
})

export type DefinitionSnapshot = Readonly<z.output<typeof snapshot>>
export type Approval = Readonly<z.output<typeof approval>>
export type RecordedOrigin = Readonly<z.output<typeof origin>>
type Block = Readonly<z.output<typeof block>>

export interface Pin {
  readonly kind: PinKind
  readonly name: string
  readonly approved: readonly Approval[]
  readonly pending: readonly DefinitionSnapshot[]
  readonly seen: { readonly hash: string; readonly at: number }
  /** Definitions that an operator blocked, including those that were approved later. */
  readonly blocked?: readonly Block[] | undefined
}

export interface ServerPins {
  readonly server: string
  readonly origins: readonly RecordedOrigin[]
  readonly acknowledged: number
  readonly distrusted: number
  readonly listed: boolean
  readonly pins: ReadonlyMap<string, Pin>
}

export const keyOf = (kind: PinKind, name: string): string => `${kind}:${name}`

export const emptyRecord = (server: string, distrusted = 0): ServerPins => ({
  server,
  origins: [],
  acknowledged: 0,
  distrusted,
  listed: false,
  pins: new Map(),
})

export const trustsFirstSight = ({ distrusted, acknowledged }: ServerPins): boolean =>
  distrusted === 0 || acknowledged >= distrusted

/** Parses the text of a pin file. Undefined if it is invalid, 'newer' if a newer Toolway wrote it. */
export function parseRecord(text: string): ServerPins | 'newer' | undefined {
  const value = parseJson(text)
  const version = asRecord(value).version
  if (typeof version === 'number' && version > recordVersion) return 'newer'
  // Do not compile the schema (`jitless`): that takes longer than parsing the few files that are read at startup.
  const { success, data } = recordSchema.safeParse(value, { jitless: true })
  if (!success) return undefined
  const { version: _, ...record } = data
  const pins = new Map(data.pins.map((item): [string, Pin] => [keyOf(item.kind, item.name), item]))
  // Toolway 0.1 stored the whole path of a URL.
  const origins = data.origins.map((origin) => ({ ...origin, text: withoutSecrets(origin.text) }))
  return { ...record, listed: record.listed ?? data.pins.some(({ kind }) => kind !== 'instructions'), origins, pins }
}

/** Max characters per record. A larger record is stored without copies of definitions. */
const largest = 16 * 1_048_576

export function recordText(record: ServerPins): string {
  const pins = [...record.pins.values()]
  const version = pins.some(({ blocked }) => blocked) ? recordVersion : 1
  const write = (all: readonly Pin[]) => JSON.stringify({ version, ...record, pins: all })
  const text = write(pins)
  if (text.length <= largest) return text
  const bare = <T extends DefinitionSnapshot>({ definition: _, ...rest }: T) => rest as T
  return write(pins.map((item) => ({ ...item, approved: item.approved.map(bare), pending: item.pending.map(bare) })))
}

/** Where a server comes from: a hash for comparison, and a description for people, without secrets. */
export type ServerOrigin = Omit<RecordedOrigin, 'at'>

/** Programs whose first argument names the package or script that they run. */
const runners = new Set('npx bunx uvx pipx node deno bun python python3 docker podman uv'.split(' '))

/** A server's origin. Keeps only a hash and the most significant word, because arguments and URLs may hold secrets. */
export function originOf(config: ServerConfig): ServerOrigin {
  if (config.transport === 'stdio') {
    const { command, args } = config
    const program = basename(command).replace(/\.(?:exe|cmd)$/i, '')
    const what = runners.has(program)
      ? args.find((word) => /^[@\w][\w@./:-]*$/.test(word) && !/^(?:run|exec|x)$/.test(word))
      : undefined
    return { hash: digest(['stdio', command, ...args]), text: [program, what ?? ''].join(' ').trim() }
  }
  const address = URL.canParse(config.url) ? new URL(config.url) : undefined
  const text = address ? address.origin + address.pathname : config.transport
  // Exclude the query, because it may contain a key, and keys are rotated.
  return { hash: digest([config.transport, text]), text: withoutSecrets(text) }
}

/** Redacts the parts of a URL's path that look generated, because they may be secrets. Keeps other text as it is. */
function withoutSecrets(text: string): string {
  const [, origin = text, path = ''] = /^([a-z]+:\/\/[^/]*)(\/.*)$/s.exec(text) ?? []
  return origin + path.replace(/[^/]+/g, (part) => (isRandom(part) ? '[redacted]' : part))
}

const digest = (words: readonly string[]): string =>
  createHash('sha256').update(JSON.stringify(words)).digest('hex').slice(0, 16)

/** Max operator approvals kept per name: clients may see different variants, and older versions may return. */
const maxApproved = 8
/** Max definitions per name that await approval. A server that keeps changing displaces only its own older ones. */
const maxPending = 4
const maxBlocked = 8
const maxOrigins = 4

/** Merges the records of two processes, in any order. Keeps operators' approvals, and one first sight per name. */
export function mergeRecords(a: ServerPins, b: ServerPins): ServerPins {
  const pins = new Map(a.pins)
  for (const [key, pin] of b.pins) {
    const mine = pins.get(key)
    pins.set(key, mine ? mergePins(mine, pin) : pin)
  }
  const origins = unique([...a.origins, ...b.origins], (one, other) => (byTime(one, other) <= 0 ? one : other))
  return {
    server: a.server,
    origins: origins.sort(byTime).slice(-maxOrigins),
    acknowledged: Math.max(a.acknowledged, b.acknowledged),
    distrusted: Math.max(a.distrusted, b.distrusted),
    listed: a.listed || b.listed,
    pins,
  }
}

export function mergePins(a: Pin, b: Pin): Pin {
  if (a === b) return a
  const { approved, demoted } = mergeApproved([...a.approved, ...b.approved])
  const hashes = new Set(approved.map(({ hash }) => hash))
  const pending = unique([...a.pending, ...b.pending, ...demoted], earlier).filter(({ hash }) => !hashes.has(hash))
  return {
    kind: a.kind,
    name: a.name,
    approved,
    pending: pending.sort(byTime).slice(-maxPending),
    seen: byTime(a.seen, b.seen) > 0 ? a.seen : b.seen,
    ...((a.blocked || b.blocked) && { blocked: mergeBlocks([...(a.blocked ?? []), ...(b.blocked ?? [])]) }),
  }
}

/** Whether an operator has blocked a definition and not approved it since. */
export const isBlocked = ({ blocked }: Pin, hash: string): boolean =>
  blocked?.some((block) => block.hash === hash && block.at > (block.lifted ?? 0)) ?? false

/** Merges blocks: for each definition, the latest block and the latest approval count. */
const mergeBlocks = (all: readonly Block[]): Block[] =>
  unique(all, (a, b) => {
    const lifted = Math.max(a.lifted ?? 0, b.lifted ?? 0)
    return { hash: a.hash, at: Math.max(a.at, b.at), ...(lifted > 0 && { lifted }) }
  })
    .sort(byTime)
    .slice(-maxBlocked)

/** Merges approvals. Of several first sights, only the earliest counts; the others become changes to approve. */
function mergeApproved(all: readonly Approval[]): { approved: Approval[]; demoted: DefinitionSnapshot[] } {
  const approvals = unique(all, stronger)
  const byOperator = approvals.filter(({ by }) => by === 'operator').sort(byTime)
  const [first, ...others] = approvals.filter(({ by }) => by === 'first sight').sort(byTime)
  return {
    approved: [...(first ? [first] : []), ...byOperator.slice(-maxApproved)],
    demoted: others.map(({ by: _, ...snapshot }) => snapshot),
  }
}

type Dated = Pin['seen']

const byTime = (a: Dated, b: Dated): number => a.at - b.at || (a.hash < b.hash ? -1 : a.hash > b.hash ? 1 : 0)

/** Keeps one item per hash. `choose` picks among duplicates and must not depend on their order. */
function unique<T extends Dated>(all: readonly T[], choose: (a: T, b: T) => T): T[] {
  const found = new Map<string, T>()
  for (const item of all) {
    const known = found.get(item.hash)
    found.set(item.hash, known ? choose(known, item) : item)
  }
  return [...found.values()]
}

/** Merges two snapshots with the same hash, in any order: takes the fuller one and the earlier time. */
const earlier = (a: DefinitionSnapshot, b: DefinitionSnapshot): DefinitionSnapshot => ({
  ...fuller(a, b),
  at: Math.min(a.at, b.at),
})

/** Merges approvals with the same hash: an operator's outranks a first sight; otherwise the earlier time counts. */
function stronger(a: Approval, b: Approval): Approval {
  if (a.by === b.by) return { ...fuller(a, b), at: Math.min(a.at, b.at) }
  const { by, at } = a.by === 'operator' ? a : b
  return { ...fuller(a, b), by, at }
}

/** Chooses between snapshots of a definition: the one from the newer scanner, or else the one with a copy. */
function fuller<T extends DefinitionSnapshot>(a: T, b: T): T {
  if (a.scanner !== b.scanner) return a.scanner > b.scanner ? a : b
  return a.definition === undefined && b.definition !== undefined ? b : a
}
