import { createHash } from 'node:crypto'
import { basename } from 'node:path'
import * as z from 'zod'
import type { ServerConfig } from '../../config/schema.ts'

/** Changes with the form of the files, so that an older Toolway does not misread or overwrite what a newer one wrote. */
const recordVersion = 1

export const pinKinds = ['tool', 'prompt', 'instructions'] as const
export type PinKind = (typeof pinKinds)[number]

const time = z.number().nonnegative()
const hash = z.string().regex(/^[0-9a-f]{64}$/)

const sight = z.object({
  hash,
  /** When it was first seen, or approved. */
  at: time,
  /** A bounded copy, for people to compare. */
  definition: z.record(z.string(), z.unknown()).optional(),
  /** What the scanner found, which scanner, and whether something that no honest text needs is among it. */
  flags: z.array(z.string()),
  high: z.boolean(),
  scanner: z.number(),
})
const approval = sight.extend({ by: z.enum(['first sight', 'operator']) })

const pin = z.object({
  kind: z.enum(pinKinds),
  name: z.string(),
  approved: z.array(approval),
  pending: z.array(sight),
  /** Which one was seen last. */
  seen: z.object({ hash, at: time }),
})

const origin = z.object({ hash: z.string(), text: z.string(), at: time })

/** One server's file. */
const recordSchema = z.object({
  version: z.literal(recordVersion),
  server: z.string(),
  /** Where the server came from, newest last. */
  origins: z.array(origin),
  /** When an operator last approved everything of this server. */
  acknowledged: time,
  /** When its pins were lost, so that nothing of it is trusted at first sight until an operator says so; 0 if never. */
  distrusted: time,
  pins: z.array(pin),
})

/** A definition as it was seen. */
export type DefinitionSnapshot = Readonly<z.output<typeof sight>>
export type Approval = Readonly<z.output<typeof approval>>
export type RecordedOrigin = Readonly<z.output<typeof origin>>

export interface Pin {
  readonly kind: PinKind
  readonly name: string
  readonly approved: readonly Approval[]
  readonly pending: readonly DefinitionSnapshot[]
  readonly seen: { readonly hash: string; readonly at: number }
}

/** All that is remembered of one server's definitions. */
export interface ServerPins {
  readonly server: string
  readonly origins: readonly RecordedOrigin[]
  readonly acknowledged: number
  readonly distrusted: number
  readonly pins: ReadonlyMap<string, Pin>
}

export const keyOf = (kind: PinKind, name: string): string => `${kind}:${name}`

export const emptyRecord = (server: string, distrusted = 0): ServerPins => ({
  server,
  origins: [],
  acknowledged: 0,
  distrusted,
  pins: new Map(),
})

/** Whether a first sight is as good as an approval. */
export const trustsFirstSight = ({ distrusted, acknowledged }: ServerPins): boolean =>
  distrusted === 0 || acknowledged >= distrusted

/** Reads a file's text; undefined if it is not one of ours. */
export function parseRecord(text: string): ServerPins | 'newer' | undefined {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return undefined
  }
  const version = (value as { version?: unknown } | null)?.version
  if (typeof version === 'number' && version > recordVersion) return 'newer'
  // Compiling the schema takes longer than reading the few files of a start with it as it is.
  const { success, data } = recordSchema.safeParse(value, { jitless: true })
  if (!success) return undefined
  const pins = new Map(data.pins.map((item): [string, Pin] => [keyOf(item.kind, item.name), item]))
  return { ...data, pins }
}

/** More than that is kept as hashes alone, without copies to compare. */
const largest = 16 * 1_048_576

/** What goes into the file. */
export function recordText(record: ServerPins): string {
  const write = (pins: readonly Pin[]) => JSON.stringify({ version: recordVersion, ...record, pins })
  const pins = [...record.pins.values()]
  const text = write(pins)
  if (text.length <= largest) return text
  const bare = <T extends DefinitionSnapshot>({ definition: _, ...rest }: T) => rest as T
  return write(pins.map((item) => ({ ...item, approved: item.approved.map(bare), pending: item.pending.map(bare) })))
}

/** Where a server comes from: whether it is still the same place, and a text for people without anything secret. */
export interface ServerOrigin {
  readonly hash: string
  readonly text: string
}

/** Programs whose first word names what they run. */
const runners = new Set([
  'npx',
  'bunx',
  'uvx',
  'pipx',
  'node',
  'deno',
  'bun',
  'python',
  'python3',
  'docker',
  'podman',
  'uv',
])

/** Arguments and addresses may hold secrets, so that only a hash and the most telling word of them is kept. */
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
  // Without the query, where keys are rotated.
  return { hash: digest([config.transport, text]), text }
}

const digest = (words: readonly string[]): string =>
  createHash('sha256').update(JSON.stringify(words)).digest('hex').slice(0, 16)

/** An operator's decisions that are remembered for one name: variants for other clients, and versions to go back to. */
const maxApproved = 8
/** What waits for a decision; a server that changes all the time pushes its own older changes out. */
const maxPending = 4
const maxOrigins = 4

/** What two processes know together: neither loses an approval, whoever merges first. Of several first sights one is kept. */
export function mergeRecords(a: ServerPins, b: ServerPins): ServerPins {
  const pins = new Map(a.pins)
  for (const [key, pin] of b.pins) {
    const mine = pins.get(key)
    pins.set(key, mine ? mergePins(mine, pin) : pin)
  }
  return {
    server: a.server,
    origins: mergeOrigins(a.origins, b.origins),
    acknowledged: Math.max(a.acknowledged, b.acknowledged),
    distrusted: Math.max(a.distrusted, b.distrusted),
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
  }
}

/** There is one first sight, the earliest: what another process took for one at the same time is a change. */
function mergeApproved(all: readonly Approval[]): { approved: Approval[]; demoted: DefinitionSnapshot[] } {
  const approvals = unique(all, stronger)
  const byOperator = approvals.filter(({ by }) => by === 'operator').sort(byTime)
  const [first, ...others] = approvals.filter(({ by }) => by === 'first sight').sort(byTime)
  return {
    approved: [...(first ? [first] : []), ...byOperator.slice(-maxApproved)],
    demoted: others.map(({ by: _, ...sight }) => sight),
  }
}

function mergeOrigins(a: readonly RecordedOrigin[], b: readonly RecordedOrigin[]): readonly RecordedOrigin[] {
  return unique([...a, ...b], (one, other) => (byTime(one, other) <= 0 ? one : other))
    .sort(byTime)
    .slice(-maxOrigins)
}

interface Dated {
  readonly hash: string
  readonly at: number
}

const byTime = (a: Dated, b: Dated): number => a.at - b.at || (a.hash < b.hash ? -1 : a.hash > b.hash ? 1 : 0)

/** One of each hash; of two, the one that `choose` prefers, whichever comes first. */
function unique<T extends Dated>(all: readonly T[], choose: (a: T, b: T) => T): T[] {
  const found = new Map<string, T>()
  for (const item of all) {
    const known = found.get(item.hash)
    found.set(item.hash, known ? choose(known, item) : item)
  }
  return [...found.values()]
}

/** When it was first seen, as for a first sight: a demoted one is among them, and the order must not matter. */
const earlier = (a: DefinitionSnapshot, b: DefinitionSnapshot): DefinitionSnapshot => ({
  ...fuller(a, b),
  at: Math.min(a.at, b.at),
})

/** An operator's word counts more than a first sight; of two alike, the earlier. */
function stronger(a: Approval, b: Approval): Approval {
  if (a.by === b.by) return { ...fuller(a, b), at: Math.min(a.at, b.at) }
  const { by, at } = a.by === 'operator' ? a : b
  return { ...fuller(a, b), by, at }
}

/** Two accounts of one definition differ in the scanner that looked at it and in whether a copy was kept. */
function fuller<T extends DefinitionSnapshot>(a: T, b: T): T {
  if (a.scanner !== b.scanner) return a.scanner > b.scanner ? a : b
  return a.definition === undefined && b.definition !== undefined ? b : a
}
