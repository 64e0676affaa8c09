import { createHash } from 'node:crypto'
import { serverName } from '../schema/mcp-servers.ts'
import { type BranchNode, branch, type TreeMember, withMember } from '../tree.ts'
import { plainName } from '../validate.ts'
import type { TranslationReport } from './shape.ts'

/** Renames servers whose names are invalid in Toolway, with a note: some clients allow sentences or URLs as names. */
export function withPlainNames(tree: BranchNode, nameOf: NameOf, report: TranslationReport): BranchNode {
  const servers = tree.members.get('mcpServers')
  if (servers?.value.kind !== 'branch') return tree
  const renamed = new Map<string, TreeMember>()
  for (const [name, entry] of servers.value.members) {
    const other = nameOf(name)
    if (other !== name) report.notes.push(`the server ${name} was renamed to ${other}`)
    renamed.set(other, entry)
  }
  return withMember(tree, 'mcpServers', { at: servers.at, value: branch(servers.value.at, renamed) })
}

/** The names of a document's servers, as written. */
export function namesIn(tree: BranchNode): readonly string[] {
  const servers = tree.members.get('mcpServers')?.value
  return servers?.kind === 'branch' ? [...servers.members.keys()] : []
}

type NameOf = (written: string) => string

/**
 * Returns a function that replaces invalid names by valid ones, for servers in one file or in several that are used
 * together. Servers with one name are merged, and rules and pins refer to a server by its name. So a name that could
 * be that of another server gets a hash, which depends on the invalid name only.
 */
export function validNames(written: Iterable<string>): NameOf {
  const all = new Set(written)
  const readableNames = Map.groupBy(all.difference(new Set([...all].filter(isValid))), readable)
  return (name) => {
    if (isValid(name)) return name
    const plain = readable(name)
    const isUnique = plain !== undefined && !all.has(plain) && (readableNames.get(plain)?.length ?? 0) < 2
    return isUnique ? plain : hashed(name, plain)
  }
}

const isValid = (name: string): boolean => serverName.safeParse(name).success

function hashed(name: string, plain = 'server'): string {
  // JSON is unambiguous for any characters, including lone surrogates.
  const hash = createHash('sha256').update(JSON.stringify(name)).digest('hex').slice(0, 8)
  return `${plain.slice(0, 55)}-${hash}`
}

/** The valid characters of an invalid name, if any. For a path, prefers the last segment, which is the most specific. */
function readable(name: string): string | undefined {
  const last = name.split('/').at(-1) ?? ''
  const plain = /^[A-Za-z]/.test(last) && last !== name && isValid(last) ? last : plainName(name)
  if (plain !== undefined && isValid(plain)) return plain
  return isValid(`${name}-server`) ? `${name}-server` : undefined
}
