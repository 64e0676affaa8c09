import { createHash } from 'node:crypto'
import { basename } from 'node:path'
import * as z from 'zod'
import type { ServerConfig } from '../../config/schema.ts'
import { isRandom } from '../../core/secret-name.ts'

export const pinKinds = ['tool', 'prompt', 'skill', 'instructions'] as const
export type PinKind = (typeof pinKinds)[number]

const timeSchema = z.number().nonnegative()
const hashSchema = z.string().regex(/^[0-9a-f]{64}$/)

const snapshotSchema = z.object({
  hash: hashSchema,
  /** When the definition was first seen. In an approval, the time of the approval. */
  at: timeSchema,
  /** A truncated copy of the definition, for people to compare. */
  definition: z.record(z.string(), z.unknown()).optional(),
  /** The scanner's findings, whether any of them has high severity, and the scanner version. */
  flags: z.array(z.string()),
  high: z.boolean(),
  scanner: z.number(),
})
const approvalSchema = snapshotSchema.extend({ by: z.enum(['first sight', 'operator']) })

export const blockSchema = z.object({ hash: hashSchema, at: timeSchema })

export const pinSchema = z.object({
  kind: z.enum(pinKinds),
  name: z.string(),
  /** The first sight, if there was one, then operators' approvals, oldest first. */
  approved: z.array(approvalSchema),
  pending: z.array(snapshotSchema),
  seen: z.object({ hash: hashSchema, at: timeSchema }),
  /** Definitions that an operator blocked: they must not be used until an operator approves them. */
  blocked: z.array(blockSchema).optional(),
})

export const factsSchema = z.object({
  /** The server's origins, oldest first. */
  origins: z.array(z.object({ hash: z.string(), text: z.string(), at: timeSchema })),
  /** When an operator last approved everything from this server. */
  acknowledged: timeSchema,
  /** When the pins were lost, or 0. Until an operator acknowledges the loss, first sight does not count as approval. */
  distrusted: timeSchema,
  /** Whether the first listing is complete, so that further definitions are new. */
  listed: z.boolean(),
})

export type DefinitionSnapshot = Readonly<z.output<typeof snapshotSchema>>
export type Approval = Readonly<z.output<typeof approvalSchema>>
export type RecordedOrigin = PinFacts['origins'][number]
export type PinFacts = Readonly<z.output<typeof factsSchema>>
export type Pin = Readonly<z.output<typeof pinSchema>>

export interface ServerPins {
  readonly server: string
  readonly facts: PinFacts
  readonly pins: ReadonlyMap<string, Pin>
}

export const pinKey = (kind: PinKind, name: string): string => `${kind}:${name}`

export const trustsFirstSight = ({ distrusted, acknowledged }: PinFacts): boolean =>
  distrusted === 0 || acknowledged >= distrusted

/** Max operator approvals kept per name: clients may see different variants, and older versions may return. */
const maxApproved = 8
/** Max definitions per name that await approval. A server that keeps changing displaces only its own older ones. */
const maxPendingDefinitions = 4
const maxBlocked = 8
const maxOrigins = 4

export const approvalOf = (pin: Pin, hash: string): Approval | undefined =>
  pin.approved.find((approval) => approval.hash === hash)

export const snapshotIn = (pin: Pin, hash: string): DefinitionSnapshot | undefined =>
  approvalOf(pin, hash) ?? pin.pending.find((snapshot) => snapshot.hash === hash)

export const isBlocked = ({ blocked }: Pin, hash: string): boolean =>
  blocked?.some((block) => block.hash === hash) ?? false

/** Adds a definition that awaits approval, unless the pin has it already. */
export const addPending = (pin: Pin, snapshot: DefinitionSnapshot): Pin =>
  snapshotIn(pin, snapshot.hash) ? pin : { ...pin, pending: [...pin.pending, snapshot].slice(-maxPendingDefinitions) }

/** Records an operator's approval of one of the pin's definitions. */
export function approveSnapshot(pin: Pin, snapshot: DefinitionSnapshot, at: number): Pin {
  const others = <T extends { readonly hash: string }>(all: readonly T[]) =>
    all.filter(({ hash }) => hash !== snapshot.hash)
  const approved = others(pin.approved)
  const byOperator = [...approved.filter(({ by }) => by === 'operator'), { ...snapshot, at, by: 'operator' as const }]
  const { blocked, ...rest } = pin
  const stillBlocked = others(blocked ?? [])
  return {
    ...rest,
    approved: [...approved.filter(({ by }) => by === 'first sight'), ...byOperator.slice(-maxApproved)],
    pending: others(pin.pending),
    ...(stillBlocked.length > 0 && { blocked: stillBlocked }),
  }
}

export const blockSnapshot = (pin: Pin, hash: string, at: number): Pin => ({
  ...pin,
  blocked: [...(pin.blocked ?? []).filter((block) => block.hash !== hash), { hash, at }].slice(-maxBlocked),
})

export const addOrigin = (origins: readonly RecordedOrigin[], origin: RecordedOrigin): RecordedOrigin[] =>
  [...origins.filter(({ hash }) => hash !== origin.hash), origin].slice(-maxOrigins)

/** Where a server comes from: a hash for comparison, and a description for people, without secrets. */
export type ServerOrigin = Omit<RecordedOrigin, 'at'>

/** Programs whose first argument names the package or script that they run. */
const runnerPrograms = new Set('npx bunx uvx pipx node deno bun python python3 docker podman uv'.split(' '))

/** A server's origin. Keeps only a hash and the most significant word, because arguments and URLs may hold secrets. */
export function serverOrigin(config: ServerConfig): ServerOrigin {
  if (config.transport === 'stdio') {
    const { command, args } = config
    const program = basename(command).replace(/\.(?:exe|cmd)$/i, '')
    const what = runnerPrograms.has(program)
      ? args.find((word) => /^[@\w][\w@./:-]*$/.test(word) && !/^(?:run|exec|x)$/.test(word))
      : undefined
    return { hash: originHash(['stdio', command, ...args]), text: [program, what ?? ''].join(' ').trim() }
  }
  const address = URL.canParse(config.url) ? new URL(config.url) : undefined
  const text = address ? address.origin + address.pathname : config.transport
  // Exclude the query, because it may contain a key, and keys are rotated.
  return { hash: originHash([config.transport, text]), text: redactPath(text) }
}

/** Redacts the parts of a URL's path that look generated, because they may be secrets. Keeps other text as it is. */
export function redactPath(text: string): string {
  const [, origin = text, path = ''] = /^([a-z]+:\/\/[^/]*)(\/.*)$/s.exec(text) ?? []
  return origin + path.replace(/[^/]+/g, (part) => (isRandom(part) ? '[redacted]' : part))
}

const originHash = (words: readonly string[]): string =>
  createHash('sha256').update(JSON.stringify(words)).digest('hex').slice(0, 16)
