/** Longer queries are no better. */
const longest = 1_000
/** A message of more parts is searched for as a whole only. */
const mostParts = 8
/** How far back a conversation tells what its last message is about. */
const mostMessages = 3

const partEnd = /[.;!?\n]+|,?\s+(?:and(?:\s+then)?|then)\s+/i

/**
 * Searches for each step of a task as well as for the whole of it, which finds far more of what is needed, and for what
 * was asked before, since "and in Rome?" says little by itself. The best of every search come first; what the last
 * message finds comes before what earlier ones find.
 */
export function searchAll<Found extends { readonly name: string }>(
  messages: readonly string[],
  search: (query: string) => readonly Found[],
): readonly Found[] {
  const found = messages.slice(0, mostMessages).flatMap((message) => inTurns(queriesIn(message).map(search)))
  return byName(found)
}

/** Each of them once, where it stands first. */
export const byName = <Found extends { readonly name: string }>(found: readonly Found[]): readonly Found[] => [
  ...new Map(found.map((one) => [one.name, one])).values(),
]

/** The whole of a message, and its parts. */
export function queriesIn(message: string): readonly string[] {
  const whole = message.slice(0, longest).trim()
  const parts = whole
    .split(partEnd)
    .map((part) => part.trim())
    // A number or a sign says nothing about what to do.
    .filter((part) => part !== whole && /\p{L}{2}/u.test(part))
  return parts.length <= mostParts ? [whole, ...parts] : [whole]
}

/** The first of each list, then the second of each, and so on. */
export function inTurns<Item>(given: Iterable<readonly Item[]>): readonly Item[] {
  const lists = [...given]
  const longestList = Math.max(0, ...lists.map(({ length }) => length))
  return Array.from({ length: longestList }, (_, place) => lists.flatMap((list) => list.slice(place, place + 1))).flat()
}
