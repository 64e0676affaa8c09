/** What changes in a query: empty and undefined values leave it. */
export type QueryChanges = Readonly<Record<string, string | undefined>>

/** A query with some of its values changed; the others stay, and so does their order. */
export function changedQuery(search: string, changes: QueryChanges): string {
  const query = new URLSearchParams(search)
  for (const [name, value] of Object.entries(changes)) {
    if (value === undefined || value === '') query.delete(name)
    else query.set(name, value)
  }
  const text = query.toString()
  return text === '' ? '' : `?${text}`
}

/** An address with a query made of what is given. */
export const withQuery = (path: string, values: QueryChanges): string => path + changedQuery('', values)

/** One of a few words in a query, or the first of them where it says anything else. */
export function wordIn<Word extends string>(query: URLSearchParams, name: string, words: readonly Word[]): Word {
  const given = query.get(name)
  return words.find((word) => word === given) ?? (words[0] as Word)
}
