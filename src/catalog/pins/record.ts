import * as z from 'zod'

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
export type Sight = Readonly<z.output<typeof sight>>
export type Approval = Readonly<z.output<typeof approval>>
export type Origin = Readonly<z.output<typeof origin>>

export interface Pin {
  readonly kind: PinKind
  readonly name: string
  readonly approved: readonly Approval[]
  readonly pending: readonly Sight[]
  readonly seen: { readonly hash: string; readonly at: number }
}

/** All that is remembered of one server's definitions. */
export interface ServerPins {
  readonly server: string
  readonly origins: readonly Origin[]
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
  const bare = <T extends Sight>({ definition: _, ...rest }: T) => rest as T
  return write(pins.map((item) => ({ ...item, approved: item.approved.map(bare), pending: item.pending.map(bare) })))
}
