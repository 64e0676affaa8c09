import type { Refusal } from './verdict.ts'

/** An entry that has been asked about: its number, and what global policy says about it whoever asks. */
export interface NumberedEntry {
  /** Undefined for one that is not remembered. */
  readonly number: number | undefined
  /** For callers that are authenticated. */
  readonly refusal: Refusal | undefined
  /** For those that are not. */
  readonly anonymousRefusal: Refusal | undefined
}

type Refuse = (server: string, name: string, isTool: boolean, authenticated: boolean) => Refusal | undefined

/** Longer names are asked about anew each time: URIs come from callers, who must not be able to fill the memory. */
const maxName = 256

/** Numbers entries as they come, from 0 up to the limit; then starts afresh and says so. */
export function createEntryNumbers(
  limit: number,
  refuse: Refuse,
  startsAfresh: () => void,
): (server: string, name: string, isTool: boolean) => NumberedEntry {
  // Nested, so that looking up joins no strings: each name has its hash already.
  let tools = new Map<string, Map<string, NumberedEntry>>()
  let others = new Map<string, Map<string, NumberedEntry>>()
  let next = 0
  const entryOf = (server: string, name: string, isTool: boolean, number: number | undefined) => ({
    number,
    refusal: refuse(server, name, isTool, true),
    anonymousRefusal: refuse(server, name, isTool, false),
  })
  return (server, name, isTool) => {
    if (name.length > maxName) return entryOf(server, name, isTool, undefined)
    const known = (isTool ? tools : others).get(server)?.get(name)
    if (known) return known
    if (next === limit) {
      tools = new Map()
      others = new Map()
      next = 0
      startsAfresh()
    }
    const servers = isTool ? tools : others
    const names = servers.get(server) ?? new Map<string, NumberedEntry>()
    const entry = entryOf(server, name, isTool, next++)
    servers.set(server, names.set(name, entry))
    return entry
  }
}
