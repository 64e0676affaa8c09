/** Changes to query parameters. Empty and undefined values remove a parameter. */
export type QueryChanges = Readonly<Record<string, string | undefined>>

/** Applies changes to a query. All other parameters stay in their order. */
export function updateQuery(search: string, changes: QueryChanges): string {
  const query = new URLSearchParams(search)
  for (const [name, value] of Object.entries(changes)) {
    if (value === undefined || value === '') query.delete(name)
    else query.set(name, value)
  }
  const text = query.toString()
  return text === '' ? '' : `?${text}`
}

export const withQuery = (path: string, values: QueryChanges): string => path + updateQuery('', values)

/** The value of a parameter if it is one of the allowed words, else the first allowed word. */
export function choiceParam<Word extends string>(query: URLSearchParams, name: string, allowed: readonly Word[]): Word {
  const value = query.get(name)
  return allowed.find((choice) => choice === value) ?? (allowed[0] as Word)
}
