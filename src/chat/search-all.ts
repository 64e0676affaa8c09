/** How far back a conversation tells what its last message is about. */
const maxMessages = 3

/**
 * Searches for what was asked last and for what was asked before, since "and in Rome?" says little by itself. What the
 * last message finds comes first. A search takes a task of several steps apart by itself.
 */
export function searchAll<Found extends { readonly name: string }>(
  messages: readonly string[],
  search: (query: string) => readonly Found[],
): readonly Found[] {
  return byName(messages.slice(0, maxMessages).flatMap((message) => search(message)))
}

/** Each of them once, where it stands first. */
export const byName = <Found extends { readonly name: string }>(found: readonly Found[]): readonly Found[] => [
  ...new Map(found.map((one) => [one.name, one])).values(),
]

/** The first of each list, then the second of each, and so on. */
export function inTurns<Item>(given: Iterable<readonly Item[]>): readonly Item[] {
  const lists = [...given]
  const longest = Math.max(0, ...lists.map(({ length }) => length))
  return Array.from({ length: longest }, (_, place) => lists.flatMap((list) => list.slice(place, place + 1))).flat()
}
