import type { Served } from '../core/access.ts'
import type { Denial } from '../core/decision.ts'
import { type Kind, seenName } from '../core/entry.ts'
import { type ErrorCode, ToolwayError } from '../core/errors.ts'
import type { Source } from '../core/source.ts'
import { memoizeByObject } from '../lib/memoize.ts'
import { quote } from '../lib/message-text.ts'
import { nearMisses } from '../lib/similar-text.ts'
import { sharedEnds } from './pins/definition.ts'
import type { Item } from './snapshot.ts'

const wordFor = (kind: Kind): string => (kind === 'template' ? 'resource template' : kind)

/** The error for an unknown server. `known` holds the server names that the caller may see. */
export function unknownServer(server: string, known: readonly string[]): ToolwayError {
  const hint = suggestNames(nearMisses(server, known)) || ' Call list_servers to see the servers you may use.'
  return new ToolwayError('SERVER_NOT_FOUND', `There is no server named ${quote(server)}.${hint}`)
}

/** The error for an unknown entry. Suggests names among `offered`, in the form that `spelt` returns. */
export function unknownEntry(
  kind: Kind,
  name: string,
  offered: readonly Item[],
  server?: string,
  spelt: (item: Item) => string = servedName,
): ToolwayError {
  const where = server === undefined ? '' : ` on the server ${quote(server)}`
  const hint =
    suggestNames(similar(name, offered).map(spelt)) || ` List the ${wordFor(kind)}s to see the available names.`
  return new ToolwayError('TOOL_NOT_FOUND', `There is no ${wordFor(kind)} ${quote(name)}${where}.${hint}`, { server })
}

/** Explains that the caller may not use anything (of this kind) on a server. Does not name the denied entries. */
export function nothingUsable(server: string, { code, rule }: Denial, kind?: Kind): string {
  const what = kind === undefined ? 'anything' : `any ${wordFor(kind)}`
  const nothing = `You may not use ${what} on the server ${quote(server)}: ${rule}`
  if (code !== 'WRITE_NOT_ALLOWED') return `${nothing} denies it. Use another server, or ask the operator.`
  const settings = `mcpServers.${server}.readTools, or set mcpServers.${server}.trustAnnotations`
  return `${nothing} allows only read-only tools, and none of its tools is known to be read-only. The operator can list read-only tools in ${settings} to trust its readOnlyHint.`
}

/**
 * The error for a spelling that matches several entries. `usable` holds those that the caller may see. If that is only
 * one, it is not used instead: the caller may mean one that is denied. But the error does not mention the others.
 */
export function ambiguous(kind: Kind, spelling: string, usable: readonly Served[]): ToolwayError {
  const names = usable.slice(0, 10).map(({ name }) => quote(name))
  if (names.length === 1) {
    const sentence = `${quote(spelling)} is not the exact name of a ${wordFor(kind)}. Did you mean ${names[0]}?`
    return new ToolwayError('TOOL_NOT_FOUND', sentence)
  }
  const hint = names.length === 0 ? '' : ` Use one of their exact names: ${names.join(', ')}.`
  return new ToolwayError('TOOL_NOT_FOUND', `${quote(spelling)} matches more than one ${wordFor(kind)}.${hint}`)
}

/** How long a call waited. `parameter` is the name of the caller's parameter that limited the time, if one did. */
export interface WaitedTime {
  readonly ms: number
  readonly parameter?: string
}

/**
 * The error for a server whose entries of a kind are not all known: it may offer the entry, so "not found" would be
 * wrong. Undefined if they are known. `waited` is set if the call waited and the server is still starting.
 */
export function serverNotReady(source: Source, kind: Kind, waited?: WaitedTime): ToolwayError | undefined {
  const { health, reason } = source.status()
  const incomplete = source.incomplete?.() ?? []
  // A URI that is not a listed resource may match a template.
  const isIncomplete = incomplete.includes(kind) || (kind === 'resource' && incomplete.includes('template'))
  if (source.entries().length > 0 && !isIncomplete) return undefined
  const server = source.name
  const refuse = (code: ErrorCode, text: string) => new ToolwayError(code, text, { server, unsent: true })
  if (health === 'needs-auth') return refuse('AUTH_REQUIRED', reason)
  if (health === 'disabled') return refuse('SERVER_DISABLED', `The server ${quote(server)} is disabled: ${reason}.`)
  if (health === 'unhealthy')
    return refuse('SERVER_UNHEALTHY', `The server ${quote(server)} cannot be reached; try again later. ${reason}`)
  if (isIncomplete) {
    const unknown = `It is not known whether the server ${quote(server)} has this ${wordFor(kind)}; try again later.`
    return refuse('SERVER_UNHEALTHY', `${unknown} ${reason}`)
  }
  if (waited === undefined) return undefined
  const { ms, parameter } = waited
  const remedy =
    parameter === undefined
      ? `To let calls wait longer, raise mcpServers.${server}.timeout.`
      : `To wait longer, call again with a longer ${parameter}.`
  return refuse(
    'SERVER_UNAVAILABLE',
    `The server ${quote(server)} is still starting after ${ms / 1000} s, so nothing was sent. Try again soon. ${remedy}`,
  )
}

/** Max number of names to compare by edit distance. `alikeness` preselects them. */
const maxComparedNames = 50

/** Entries that the caller may have meant: those with the same name on any server, or else with similar names. */
function similar(spelling: string, offered: readonly Item[]): readonly Item[] {
  const wanted = evenly(spelling)
  const namesakes = evenedOf(offered).filter(({ own, served }) => own === wanted || served === wanted)
  if (namesakes.length > 0) return namesakes.slice(0, 3).map(({ item }) => item)
  const likely = maxAlike(spelling, offered)
  for (const spelt of itemSpellings) {
    const near = nearMisses(spelling, likely.map(spelt))
    const meant = near.flatMap((word) => likely.filter((item) => spelt(item) === word))
    if (meant.length > 0) return meant.slice(0, 3)
  }
  return []
}

const servedName = ({ name }: Item): string => name
export const ownNameOf = ({ entry }: Item): string => seenName(entry)

const itemSpellings = [servedName, ({ entry }: Item) => `${entry.server}.${seenName(entry)}`, ownNameOf]

function maxAlike(spelling: string, offered: readonly Item[]): readonly Item[] {
  const wanted = evenly(spelling)
  const scored = evenedOf(offered).map(({ item, served, own }) => {
    return { item, alike: Math.max(alikeness(wanted, served), alikeness(wanted, own)) }
  })
  const best = scored.filter(({ alike }) => alike > 0).sort((a, b) => b.alike - a.alike)
  return best.slice(0, maxComparedNames).map(({ item }) => item)
}

interface Evened {
  readonly item: Item
  readonly served: string
  readonly own: string
}

/** The items with normalized names for comparison. Cached per list, so that repeated wrong names cost little. */
const evenedOf = memoizeByObject((items: readonly Item[]): readonly Evened[] =>
  items.map((item) => ({ item, served: evenly(item.name), own: evenly(seenName(item.entry)) })),
)

const evenly = (name: string): string =>
  name
    .slice(0, 256)
    .toLowerCase()
    .replace(/::|__|[./]/g, '_')

const alikeness = (wanted: string, offered: string): number => {
  const { start, end } = sharedEnds(wanted, offered)
  return start + end
}

const suggestNames = (names: readonly string[]): string =>
  names.length === 0 ? '' : ` Did you mean ${names.map((name) => quote(name)).join(' or ')}?`
