import { readFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { editorSchema } from '../src/config/editor-schema.ts'
import { configurationReference } from '../tooling/configuration-reference/page.ts'

const page = configurationReference()

test('docs/configuration-reference.md is what `npm run generate` writes', async () => {
  const written = await readFile(new URL('../docs/configuration-reference.md', import.meta.url), 'utf8')
  expect(written).toBe(page)
})

interface Schema {
  readonly properties?: Readonly<Record<string, Schema>>
  readonly additionalProperties?: Schema | boolean
  readonly items?: Schema
  readonly oneOf?: readonly Schema[]
  readonly description?: string
}

interface Meaning {
  readonly key: string
  readonly text: string
}

/** Every key that editors know, spelt as on the page, which is made from the schema by another way. */
function known({ properties = {}, additionalProperties, items, oneOf = [] }: Schema, path: string): Meaning[] {
  return [
    ...Object.entries(properties).flatMap(([name, schema]) => {
      const key = path === '' ? name : `${path}.${name}`
      return [{ key, text: schema.description ?? '' }, ...known(schema, key)]
    }),
    ...(typeof additionalProperties === 'object' ? known(additionalProperties, `${path}.NAME`) : []),
    ...(items ? known(items, `${path}[]`) : []),
    ...oneOf.flatMap((form) => known(form, path)),
  ]
}

/** What the page says: of sections below their headings, of forms too, and of all else in tables. */
function told(): Meaning[] {
  const lines = page.split('\n')
  let section = ''
  return lines.flatMap((line, index) => {
    const below = lines[index + 2] ?? ''
    const [, heading] = /^## (.*)/.exec(line) ?? []
    if (heading !== undefined) section = `${heading}.`
    const [, place, decidedBy] = /^### `(.*)` with `(\w+):/.exec(line) ?? []
    const [, key] = /^\| `([^`]+)` \|/.exec(line) ?? []
    if (heading !== undefined) return [{ key: heading, text: below }]
    if (place !== undefined) return [{ key: `${place}.${decidedBy}`, text: below }]
    return key === undefined ? [] : [{ key: section + key, text: line }]
  })
}

test('every key that editors know is on the page, with its meaning', () => {
  const keys = known(editorSchema() as Schema, '')
  const said = told()
  expect(keys.length).toBeGreaterThan(150)
  expect(keys.filter(({ key, text }) => !said.some((one) => one.key === key && one.text.includes(text)))).toEqual([])
})
