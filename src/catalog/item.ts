import type { Served } from '../core/access.ts'
import type { Definition, Entry, Kind } from '../core/entry.ts'
import { asRecord, isRecord } from '../lib/is-record.ts'

/** A served entry with its definition as JSON, which is serialized on demand and cached. */
export interface Item extends Served {
  readonly json: string
}

export interface Label {
  readonly name: string
  readonly origin: 'native' | 'forwarded'
  /** Whether the source currently cannot confirm its entries. */
  readonly stale: boolean
  /** The served URI of the app page named in a tool's `_meta`. */
  readonly page?: string
}

const nameField: Readonly<Record<Kind, string>> = {
  tool: 'name',
  prompt: 'name',
  resource: 'uri',
  template: 'uriTemplate',
}

const ourKeys = new Set(['source', 'server', 'stale', 'flags'].map((word) => `dev.toolway/${word}`))

/** Returns the scanner's findings in an entry's definition, one word per finding (B5). */
export type FlagsOf = (entry: Entry) => readonly string[]

/** Creates the item for an entry. Builds the definition on first use, because most entries are never listed. */
export function createItem(entry: Entry, label: Label, flagsOf: FlagsOf = () => []): Item {
  let made: { readonly flags: string; readonly definition: Definition; json?: string } | undefined
  /** The definition with the current flags, which the background scanner may add after the first listing. */
  const served = () => {
    const flags = flagsOf(entry)
    const key = flags.join()
    if (made?.flags !== key) made = { flags: key, definition: servedDefinition(entry, label, flags) }
    return made
  }
  return {
    name: label.name,
    entry,
    get definition() {
      return served().definition
    },
    get json() {
      const current = served()
      current.json ??= JSON.stringify(current.definition)
      return current.json
    },
  }
}

export function renamed(item: Item, name: string): Item {
  const definition = () => ({ ...item.definition, [nameField[item.entry.kind]]: name })
  return {
    name,
    entry: item.entry,
    get definition() {
      return definition()
    },
    get json() {
      return JSON.stringify(definition())
    },
  }
}

/** The source's definition with the served name and Toolway's `_meta`. Members keep the source's order. */
function servedDefinition(entry: Entry, label: Label, flags: readonly string[]): Definition {
  const meta: Record<string, unknown> = {}
  for (const [key, value] of Object.entries(asRecord(entry.definition._meta))) {
    if (!ourKeys.has(key)) define(meta, key, label.page === undefined ? value : withPage(key, value, label.page))
  }
  meta['dev.toolway/source'] = label.origin
  meta['dev.toolway/server'] = entry.server
  if (label.stale) meta['dev.toolway/stale'] = true
  if (flags.length > 0) meta['dev.toolway/flags'] = flags
  return { ...entry.definition, [nameField[entry.kind]]: label.name, _meta: meta }
}

function withPage(key: string, value: unknown, page: string): unknown {
  if (key === 'ui/resourceUri') return page
  return key === 'ui' && isRecord(value) && 'resourceUri' in value ? { ...value, resourceUri: page } : value
}

/** Sets a member. Assigning to `__proto__`, a key that a server may send, would set the prototype instead. */
export const define = (target: object, key: string, value: unknown): object =>
  Object.defineProperty(target, key, { value, enumerable: true, writable: true, configurable: true })
