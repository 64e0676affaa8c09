import { problemAt } from '../problems.ts'
import { type List, leaf, type Member, type Place, type Tree } from '../tree.ts'
import type { Report } from './report.ts'
import { instead, isFalse, isTrue } from './shape.ts'

/** Tools are written `server::tool` there; one without a server means that tool of any server. */
export const toolName = (written: string): string => {
  if (written.includes('::')) return written.replace('::', '.')
  return written === '*' || written.includes('.') ? written : `*.${written}`
}

export function toolsOf(entry: Member | undefined): Member | undefined {
  if (entry?.value.kind !== 'list') return entry
  const items = entry.value.items.map((item) =>
    item.kind === 'leaf' && typeof item.value === 'string' ? instead(item, toolName(item.value)) : item,
  )
  return { at: entry.at, value: { ...entry.value, items } }
}

interface Servers {
  readonly servers: readonly string[]
  /** Servers whose own entry requires authentication. */
  readonly authenticated: readonly string[]
  readonly at: Place
}

/**
 * `auth_required` as patterns of tools: true for every forwarded tool, a list of tools and servers, or a table by server
 * or tool with true, false or a list of tools.
 */
export function authRequired(
  entries: readonly (Member | undefined)[],
  { servers, authenticated, at }: Servers,
  report: Report,
): List | undefined {
  const wholeServer = (name: string) => (servers.includes(name) || name === 'native' ? `${name}.*` : toolName(name))
  const listed = ({ items }: List, prefix = ''): Tree[] =>
    items.map((item) => {
      if (item.kind !== 'leaf' || typeof item.value !== 'string') return item
      return instead(item, prefix === '' ? wholeServer(item.value) : `${prefix}.${item.value.replace(/^.*::/, '')}`)
    })
  const patterns = ({ at: place, value }: Member): Tree[] => {
    if (isFalse(value)) return []
    if (isTrue(value)) return servers.map((name) => leaf(place, `${name}.*`))
    if (value.kind === 'list') return listed(value)
    if (value.kind === 'branch') {
      return [...value.members].flatMap(([name, one]) => {
        if (isFalse(one.value)) return []
        if (isTrue(one.value)) return [leaf(one.at, wholeServer(name))]
        return one.value.kind === 'list' ? listed(one.value, name) : unreadable(one.at)
      })
    }
    return unreadable(place)
  }
  const unreadable = (place: Place): Tree[] => {
    report.problems.push(problemAt(place, 'expected true, false, a list of tools, or a table by server or tool'))
    return []
  }
  const items = [
    ...entries.flatMap((entry) => (entry ? patterns(entry) : [])),
    ...authenticated.map((name) => leaf(at, `${name}.*`)),
  ]
  return items.length === 0 ? undefined : { kind: 'list', at, items }
}
