import fc from 'fast-check'

/** A random layout of a file: each gap between two tokens is different. */
interface Layout {
  gap(): string
  trailing(): boolean
}

const gaps = [
  '',
  '',
  ' ',
  '  ',
  '\t',
  '\n',
  '\r\n',
  '\n\n  ',
  ' // a comment, with { braces }\n',
  '/* another,\n one */',
]

/** JSON text of a value in some layout, with comments and trailing commas. */
function written(value: unknown, layout: Layout): string {
  const { gap } = layout
  const many = (items: readonly string[]) =>
    items.map((item) => `${gap()}${item}${gap()}`).join(',') +
    (items.length > 0 && layout.trailing() ? `,${gap()}` : '')
  if (Array.isArray(value)) return `[${many(value.map((item) => written(item, layout)))}${gap()}]`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  const members = Object.entries(value).map(
    ([key, part]) => `${JSON.stringify(key)}${gap()}:${gap()}${written(part, layout)}`,
  )
  return `{${many(members)}${gap()}}`
}

const name = fc.string({ minLength: 1, maxLength: 8 }).filter((text) => text !== '__proto__' && text !== 'toolway')

const server = fc.record({
  command: fc.string({ maxLength: 10 }),
  args: fc.array(fc.string({ maxLength: 10 }), { maxLength: 3 }),
  env: fc.dictionary(name, fc.string({ maxLength: 10 }), { maxKeys: 2 }),
})

/** What a client keeps: servers under one key, and settings of its own. */
const content = (key: string) =>
  fc.record(
    {
      [key]: fc.dictionary(name, server, { maxKeys: 3 }),
      theme: fc.string(),
      deep: fc.record({
        list: fc.array(fc.anything({ maxDepth: 0, withDate: false }), { maxLength: 0 }),
        flag: fc.boolean(),
      }),
    },
    { requiredKeys: [] },
  )

/** Random files of a client, with any layout and with or without a byte order mark. */
export const jsonFile = (key: string): fc.Arbitrary<{ value: Record<string, unknown>; text: string; mark: string }> =>
  fc
    .tuple(
      content(key),
      fc.infiniteStream(fc.constantFrom(...gaps)),
      fc.infiniteStream(fc.boolean()),
      fc.constantFrom('', '\ufeff'),
    )
    .map(([value, gapStream, commas, mark]) => {
      const layout: Layout = {
        gap: () => gapStream.next().value as string,
        trailing: () => commas.next().value as boolean,
      }
      return {
        value: value as Record<string, unknown>,
        text: `${layout.gap()}${written(value, layout)}${layout.gap()}`,
        mark,
      }
    })
