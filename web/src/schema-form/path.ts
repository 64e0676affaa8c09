/** The path to a nested value. */
export type Path = readonly (string | number)[]

/** A path as text, such as `server.ports[0]`. The gateway's messages name values like that. */
export const pathText = (path: Path): string =>
  path.map((part, index) => (typeof part === 'number' ? `[${part}]` : index === 0 ? part : `.${part}`)).join('')

/** An object's own member: names such as `constructor` must not find what all objects inherit. */
export const memberOf = <T>(object: Readonly<Record<string, T>>, name: string): T | undefined =>
  Object.hasOwn(object, name) ? object[name] : undefined

/** A copy of an object with a changed member; undefined removes the member. The other members keep their order. */
export function withMember(object: unknown, name: string, value: unknown): Readonly<Record<string, unknown>> {
  const members = typeof object === 'object' && object !== null ? Object.entries(object) : []
  const others = members.filter(([key]) => key !== name)
  if (value === undefined) return Object.fromEntries(others)
  if (others.length === members.length) return Object.fromEntries([...members, [name, value]])
  return Object.fromEntries(members.map(([key, old]) => [key, key === name ? value : old]))
}

/** A copy of a list with a changed item. Undefined becomes null, because JSON arrays have no holes. */
export const withItem = (list: readonly unknown[], index: number, value: unknown): readonly unknown[] =>
  list.map((old, position) => (position === index ? (value ?? null) : old))

export const withoutItem = (list: readonly unknown[], index: number): readonly unknown[] =>
  list.filter((_, position) => position !== index)
