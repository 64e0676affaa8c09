/** A type as text, and whether it needs brackets where something else is joined to it. */
export interface Type {
  readonly text: string
  readonly joined: boolean
}

export const atom = (text: string): Type => ({ text, joined: false })
export const unknownType = atom('unknown')

/** The type in brackets where it needs them. */
export const closed = ({ text, joined }: Type): string => (joined ? `(${text})` : text)

/** Any of these. What can be anything makes the whole so. */
export function union(types: readonly Type[]): Type {
  const different = distinct(types)
  if (different.length === 0 || different.some(({ text }) => text === 'unknown')) return unknownType
  if (different.length === 1) return different[0] as Type
  return { text: different.map(closed).join(' | '), joined: true }
}

/** All of these at once. What can be anything adds nothing. */
export function intersection(types: readonly Type[]): Type {
  const different = distinct(types).filter(({ text }) => text !== 'unknown')
  if (different.length <= 1) return different[0] ?? unknownType
  return { text: different.map(closed).join(' & '), joined: true }
}

const distinct = (types: readonly Type[]): readonly Type[] => [
  ...new Map(types.map((type) => [type.text, type])).values(),
]
