import type { Served } from '../core/access.ts'
import type { Definition, Entry, Kind } from '../core/entry.ts'
import { isRecord } from '../lib/is-record.ts'

/** A served entry with its definition as JSON, which is written at most once. */
export interface Item extends Served {
  readonly json: string
}

/** All that the served definition adds to the source's own. */
export interface Label {
  readonly name: string
  readonly origin: 'native' | 'forwarded'
  /** Set while the source cannot confirm what it once said. */
  readonly stale: boolean
  /** The served form of the app page that a tool's `_meta` names. */
  readonly page?: string
}

/** The field that carries the name of an entry in its definition. */
const nameField: Readonly<Record<Kind, string>> = {
  tool: 'name',
  prompt: 'name',
  resource: 'uri',
  template: 'uriTemplate',
}

const ourKeys: ReadonlySet<string> = new Set([
  'dev.toolway/source',
  'dev.toolway/server',
  'dev.toolway/stale',
  'dev.toolway/flags',
])

/** What is suspicious about a definition, in a word each (B5). */
export type FlagsOf = (entry: Entry) => readonly string[]

/** Makes an entry's served form. Nothing is copied or written before somebody lists it: most entries are only called. */
export function createItem(entry: Entry, label: Label, flagsOf: FlagsOf = () => []): Item {
  let made: { readonly flags: string; readonly definition: Definition; json?: string } | undefined
  /** Definitions are looked at in the background, so that flags may come after the first listing. */
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

/** The same entry under another name. */
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

/** The source's definition, verbatim and in its own order, under the served name and with our `_meta`. */
function servedDefinition(entry: Entry, label: Label, flags: readonly string[]): Definition {
  const meta: Record<string, unknown> = {}
  for (const [key, value] of Object.entries(metaOf(entry.definition))) {
    if (!ourKeys.has(key)) define(meta, key, label.page === undefined ? value : withPage(key, value, label.page))
  }
  meta['dev.toolway/source'] = label.origin
  meta['dev.toolway/server'] = entry.server
  if (label.stale) meta['dev.toolway/stale'] = true
  if (flags.length > 0) meta['dev.toolway/flags'] = flags
  return { ...entry.definition, [nameField[entry.kind]]: label.name, _meta: meta }
}

/** The URI of the app page that a tool opens in the host, as its server spells it. */
export function pageOf(definition: Definition): string | undefined {
  if (definition._meta === undefined) return undefined
  const meta = metaOf(definition)
  const nested = isRecord(meta.ui) ? meta.ui.resourceUri : undefined
  const uri = nested ?? meta['ui/resourceUri']
  return typeof uri === 'string' ? uri : undefined
}

function withPage(key: string, value: unknown, page: string): unknown {
  if (key === 'ui/resourceUri') return page
  return key === 'ui' && isRecord(value) && 'resourceUri' in value ? { ...value, resourceUri: page } : value
}

// Assigning to `__proto__` would set the prototype; a server may well send such a key.
const define = (target: object, key: string, value: unknown) =>
  Object.defineProperty(target, key, { value, enumerable: true, writable: true, configurable: true })

const metaOf = (definition: Definition): Readonly<Record<string, unknown>> =>
  isRecord(definition._meta) ? definition._meta : {}
