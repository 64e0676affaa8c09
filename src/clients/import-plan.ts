import { fingerprint } from '../config/import/fingerprint.ts'
import type { Definition } from '../config/import/read-servers.ts'
import { keepsState, statefulNote } from '../config/import/stateful-servers.ts'
import { called, type FoundServer, freeName, type MergedServer, merge } from './merge.ts'
import { type FindSecrets, type Keep, withoutSecrets } from './secrets.ts'
import { tidy } from './tidy.ts'

export interface ImportOptions {
  /** The servers that the configuration has already. */
  readonly known: ReadonlyMap<string, Definition>
  readonly find: FindSecrets
  readonly keep: Keep
  /** Variables and files that a server of a client refers to and that are not there. */
  readonly missing: (definition: Definition) => readonly string[]
}

/** A server to be added. */
export interface PlannedServer extends MergedServer {
  /** What must be there before it can be used; until then it is disabled, so that the others run. */
  readonly waiting: readonly string[]
}

/** What an import would do to a configuration. */
export interface ImportPlan {
  readonly added: readonly PlannedServer[]
  /** Servers that are there already, by the name they have there. */
  readonly present: readonly string[]
  readonly notes: readonly string[]
  /** How many secrets became references. */
  readonly secrets: number
}

/** Brings servers together, moves their secrets away, and leaves out what is there already. */
export async function planImport(found: readonly FoundServer[], options: ImportOptions): Promise<ImportPlan> {
  const { known, find, keep, missing } = options
  const merged = merge(found)
  const added = new Map<string, PlannedServer>()
  const present: string[] = []
  const notes = [...merged.notes]
  let secrets = 0
  for (const { name, definition: written, origins } of merged.servers) {
    const { definition: safe, moved } = await withoutSecrets(name, written, find, keep)
    const definition = withSession(tidy(safe))
    const mark = fingerprint(definition)
    const twin = [...known].find(([, other]) => fingerprint(tidy(other)) === mark)?.[0]
    if (twin !== undefined) {
      present.push(twin)
      continue
    }
    secrets += moved
    const [origin] = origins
    const free = origin ? freeName(name, origin, (other) => known.has(other) || added.has(other)) : name
    if (origin && free !== name)
      notes.push(`another server is called ${name} already; that of ${called(origin)} is ${free}`)
    const waiting = written.disabled === true ? [] : missing(written)
    const disabled = waiting.length > 0 && { disabled: true }
    if (definition.session === 'caller' && keepsState(definition)) notes.push(statefulNote(free))
    added.set(free, { name: free, definition: { ...definition, ...disabled }, origins, waiting })
  }
  return { added: [...added.values()], present, notes, secrets }
}

/** Clients start a server for themselves alone; one that keeps state must stay so. */
const withSession = (definition: Definition): Definition =>
  definition.session === undefined && keepsState(definition) ? { ...definition, session: 'caller' } : definition
