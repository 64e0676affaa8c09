/** Empty and undefined values remove a parameter. */
export type QueryChanges = Readonly<Record<string, string | undefined>>

/** Keeps other parameters and their order. */
export function changedQuery(search: string, changes: QueryChanges): string {
  const query = new URLSearchParams(search)
  for (const [name, value] of Object.entries(changes)) {
    if (value === undefined || value === '') query.delete(name)
    else query.set(name, value)
  }
  const text = query.toString()
  return text === '' ? '' : `?${text}`
}

export const withQuery = (path: string, values: QueryChanges): string => path + changedQuery('', values)

/** The parameter if it is one of the words, else the first word. */
export function wordIn<Word extends string>(query: URLSearchParams, name: string, words: readonly Word[]): Word {
  const given = query.get(name)
  return words.find((word) => word === given) ?? (words[0] as Word)
}
