import { type BranchNode, branch, type TreeMember, withMember } from '../tree.ts'
import { plainName } from '../validate.ts'
import type { TranslationReport } from './shape.ts'

const reserved = ['native', 'sink']

/** Renames servers whose names are invalid in Toolway, with a note: some clients allow sentences or URLs as names. */
export function withPlainNames(tree: BranchNode, report: TranslationReport): BranchNode {
  const servers = tree.members.get('mcpServers')
  if (servers?.value.kind !== 'branch') return tree
  const written = [...servers.value.members.keys()]
  const renamed = new Map<string, TreeMember>()
  for (const [name, entry] of servers.value.members) {
    const taken = (other: string) => renamed.has(other) || (other !== name && written.includes(other))
    const other = unused(usable(name), taken)
    if (other !== name) report.notes.push(`the server ${name} was renamed to ${other}`)
    renamed.set(other, entry)
  }
  return withMember(tree, 'mcpServers', { at: servers.at, value: branch(servers.value.at, renamed) })
}

/** Returns a valid name. For a path, prefers the last segment, which is the most specific. */
function usable(name: string): string {
  if (reserved.includes(name)) return `${name}-server`
  const whole = plainName(name)
  if (whole === undefined) return /^[A-Za-z0-9]/.test(name) ? name : 'server'
  const last = name.split('/').at(-1) ?? ''
  return last !== name && last !== '' && plainName(last) === undefined && /^[A-Za-z]/.test(last) ? last : whole
}

function unused(name: string, taken: (name: string) => boolean): string {
  let other = name
  for (let number = 2; taken(other); number++) other = `${name.slice(0, 60)}-${number}`
  return other
}
