import type { NamingConfig } from '../config/schema.ts'
import { entryOf } from '../core/call.fixture.ts'
import type { Caller } from '../core/call.ts'
import type { Decide } from '../core/decision.ts'
import type { Definition, Entry, Kind } from '../core/entry.ts'
import type { Log } from '../core/log.ts'
import { builtInSources, type Source } from '../core/source.ts'
import type { Health } from '../core/source-status.ts'
import { buildSnapshot, type CatalogSnapshot, createChooser, createItem, readSourcePart } from './snapshot.ts'

/** What a fake source offers: names alone, or whole definitions. */
export interface Offer {
  readonly tools?: readonly (string | Definition)[]
  readonly resources?: readonly (string | Definition)[]
  readonly templates?: readonly (string | Definition)[]
  readonly prompts?: readonly (string | Definition)[]
  readonly skills?: readonly Definition[]
}

export interface FakeSource extends Source {
  /** Replaces what it offers and notifies listeners. */
  offer(offer: Offer): void
  become(health: Health, reason?: string): void
  /** Settles `ready` of a silent source. */
  speak(): void
  /** From now on `ready` settles only after the next `speak`. */
  fallSilent(): void
  /** The number of calls of `ready`. */
  readonly asked: number
}

export interface FakeSourceOptions extends Offer {
  readonly priority?: number
  readonly health?: Health
  readonly incomplete?: readonly Kind[]
  readonly mayHaveResources?: boolean
  /** `ready` settles only after `speak`. */
  readonly silent?: boolean
}

const nameFields = { tool: 'name', resource: 'uri', template: 'uriTemplate', prompt: 'name', skill: 'uri' } as const

/** A source whose offer a test decides. */
export function fakeSource(name: string, options: FakeSourceOptions = {}): FakeSource {
  const listeners = new Set<() => void>()
  let spoken = Promise.withResolvers<void>()
  if (!options.silent) spoken.resolve()
  let entries = entriesOf(name, options)
  let health = options.health ?? 'healthy'
  let reason = ''
  let asked = 0
  const changed = () => {
    for (const listener of listeners) listener()
  }
  return {
    name,
    origin: builtInSources.includes(name) ? 'native' : 'forwarded',
    priority: options.priority ?? 0,
    entries: () => entries,
    status: () => ({ health, reason, since: 0, description: '', transport: 'stdio', breaker: 'closed' }),
    incomplete: () => options.incomplete ?? [],
    ready: () => {
      asked++
      return spoken.promise
    },
    ...(options.mayHaveResources !== undefined && { mayHaveResources: () => options.mayHaveResources === true }),
    refresh: async () => {},
    onChange: (listener) => {
      listeners.add(listener)
      return { [Symbol.dispose]: () => void listeners.delete(listener) }
    },
    offer: (offer) => {
      entries = entriesOf(name, offer)
      changed()
    },
    become: (now, why = '') => {
      health = now
      reason = why
      changed()
    },
    speak: () => spoken.resolve(),
    fallSilent: () => {
      spoken = Promise.withResolvers()
    },
    get asked() {
      return asked
    },
    [Symbol.asyncDispose]: async () => {},
  }
}

function entriesOf(server: string, { tools, resources, templates, prompts, skills }: Offer): readonly Entry[] {
  const entry = (kind: Kind) => (offered: string | Definition) => {
    const definition = typeof offered === 'string' ? { [nameFields[kind]]: offered } : offered
    return entryOf({ kind, server, name: definition[nameFields[kind]] as string, definition })
  }
  return [
    ...(tools ?? []).map(entry('tool')),
    ...(resources ?? []).map(entry('resource')),
    ...(templates ?? []).map(entry('template')),
    ...(prompts ?? []).map(entry('prompt')),
    ...(skills ?? []).map(entry('skill')),
  ]
}

export const namingOf = (changes: Partial<NamingConfig> = {}): NamingConfig => ({
  strategy: 'prefix',
  separator: '__',
  aliases: {},
  maxLength: 64,
  ...changes,
})

/** A snapshot of sources as they are, and the warnings on the way. */
export function snapshotOf(sources: readonly Source[], naming: NamingConfig = namingOf()) {
  const warnings: object[] = []
  const choose = createChooser(naming)
  const warn = (facts: object) => warnings.push(facts)
  const snapshot: CatalogSnapshot = buildSnapshot(
    sources.map((source) => readSourcePart(source, choose, warn)),
    createItem,
    warn,
  )
  return { snapshot, warnings }
}

export const callerOf = (changes: Partial<Caller> = {}): Caller => ({
  agent: 'default',
  agents: '*',
  principal: 'test',
  authenticated: true,
  admin: false,
  session: 's1',
  capabilities: {},
  ...changes,
})

/** A decision function that knows no more than yes and no. */
export const decideBy =
  (mayUse: (caller: Caller, entry: Entry) => boolean): Decide =>
  (caller, entry) =>
    mayUse(caller, entry)
      ? { allowed: true, rule: 'yes' }
      : { allowed: false, code: 'DENIED_BY_POLICY', rule: 'no', reason: 'Not for you.' }

/** A log that keeps its warnings and errors. */
export function keepingLog(): Log & { readonly lines: { readonly facts: object; readonly message: string }[] } {
  const lines: { facts: object; message: string }[] = []
  const keep = (facts: object, message: string) => void lines.push({ facts, message })
  return { lines, debug() {}, info() {}, warn: keep, error: keep }
}
