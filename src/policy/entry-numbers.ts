import type { Refusal } from './verdict.ts'

/** An entry that has been asked about: its number, and what global policy says about it whoever asks. */
export interface NumberedEntry {
  readonly number: number
  /** For callers that are authenticated. */
  readonly refusal: Refusal | undefined
  /** For those that are not. */
  readonly anonymousRefusal: Refusal | undefined
}

type Refuse = (server: string, name: string, isTool: boolean, authenticated: boolean) => Refusal | undefined

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
  return (server, name, isTool) => {
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
    const entry = {
      number: next++,
      refusal: refuse(server, name, isTool, true),
      anonymousRefusal: refuse(server, name, isTool, false),
    }
    servers.set(server, names.set(name, entry))
    return entry
  }
}
