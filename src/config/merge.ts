import { type Branch, branch, type Tree } from './tree.ts'

/** Lays one document over another: objects merge, everything else is replaced; null takes a value away. */
export function merge(base: Branch, over: Branch): Branch {
  const members = new Map(base.members)
  for (const [key, entry] of over.members) {
    const known = base.members.get(key)
    members.set(key, known ? { at: entry.at, value: overlay(known.value, entry.value) } : entry)
  }
  return branch(over.at, members)
}

const overlay = (base: Tree, over: Tree): Tree =>
  base.kind === 'branch' && over.kind === 'branch' ? merge(base, over) : over
