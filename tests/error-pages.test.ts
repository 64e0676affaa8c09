import { readdir, readFile } from 'node:fs/promises'
import { PassThrough, Readable } from 'node:stream'
import type { Command } from 'commander'
import type { Nodes } from 'mdast'
import { beforeAll, expect, test } from 'vitest'
import { createProgram } from '../src/cli/program.ts'
import { editorSchema } from '../src/config/editor-schema.ts'
import { type ErrorCode, errorKinds } from '../src/core/errors.ts'
import { errorPages } from '../tooling/error-pages/error-pages.ts'
import { texts } from '../tooling/error-pages/texts.ts'
import { parseErrorPage } from '../web/src/pages/errors/parse-page.ts'

const docs = new URL('../docs/', import.meta.url)
const codes = Object.keys(errorKinds) as ErrorCode[]

let pages: ReadonlyMap<string, string>
beforeAll(async () => {
  pages = await errorPages()
})

test('E2: every code has a page, and every page a code', async () => {
  const written = await readdir(new URL('errors', docs))
  expect(written.sort()).toEqual(codes.map((code) => `${code}.md`).sort())
})

test.each(['errors.md', ...codes.map((code) => `errors/${code}.md`)])(
  'E2: docs/%s is what `npm run generate` writes',
  async (path) => {
    expect(await readFile(new URL(path, docs), 'utf8')).toBe(pages.get(path))
  },
)

test.each(codes)('E2: the example of %s is a response with that code', (code) => {
  const page = pages.get(`errors/${code}.md`) ?? ''
  const answer = /```json\n(.*?)\n```/s.exec(page)?.[1]
  if (code === 'CANCELLED') expect(answer).toBeUndefined()
  else expect(JSON.stringify(JSON.parse(answer as string))).toContain(`{"code":"${code}"`)
})

interface Schema {
  readonly properties?: Readonly<Record<string, Schema>>
  readonly additionalProperties?: Schema
  readonly items?: Schema
}

const schemaOfFile = editorSchema() as Schema

test.each(codes)('E2: the page of %s names keys that can be configured', (code) => {
  for (const key of texts[code].keys) {
    const found = key
      .split('.')
      .reduce<Schema | undefined>(
        (schema, step) => (step === '*' ? schema?.additionalProperties : schema?.properties?.[step]),
        schemaOfFile,
      )
    expect(found, key).toBeTypeOf('object')
  }
})

const program = createProgram(
  {
    stdin: Readable.from([]),
    stdout: new PassThrough(),
    stderr: new PassThrough(),
    env: {},
    cwd: '/nowhere',
    command: 'toolway',
    program: [],
    interrupted: new AbortController().signal,
  },
  () => {},
)

/** The command that words lead to, and what is left of them. */
function commandOf(
  [word, ...rest]: readonly string[],
  command: Command,
): { command: Command; rest: readonly string[] } {
  const next = command.commands.find((one) => one.name() === word)
  return next ? commandOf(rest, next) : { command, rest: word === undefined ? [] : [word, ...rest] }
}

test.each(codes)('E2: the page of %s names commands that exist', (code) => {
  const page = pages.get(`errors/${code}.md`) ?? ''
  const named = [...page.replaceAll('\n  ', ' ').matchAll(/`toolway ([a-z][^`]*)`/g)].map(
    ([, words]) => words as string,
  )
  expect(named.length).toBeGreaterThan(0)
  for (const words of named) {
    const { command, rest } = commandOf(words.split(' '), program)
    expect(command, words).not.toBe(program)
    const options = [...command.options, ...program.options].map(({ long }) => long)
    for (const option of rest.filter((word) => word.startsWith('--'))) expect(options, words).toContain(option)
    // A word in small letters that is no option's value would be a command that there is not.
    if (rest[0] !== undefined) expect(rest[0], words).toMatch(/^(--|[A-Z])|\./)
  }
})

test.each(codes)('E2: the links of the page of %s exist', (code) => {
  for (const [, target] of (pages.get(`errors/${code}.md`) ?? '').matchAll(/\]\(([^)]+)\)/g)) {
    const path = new URL(target as string, new URL('errors/', docs))
    const isOther = /\/(configuration|concepts)\.md$/.test(path.pathname)
    expect(pages.has(path.pathname.split('/docs/')[1] as string) || isOther).toBe(true)
  }
  expect(texts[code].related).not.toContain(code)
})

test('E2: every error page is parsed without leftover markup', async () => {
  expect(codes.length).toBeGreaterThan(20)
  for (const code of codes) {
    const page = await readFile(new URL(`errors/${code}.md`, docs), 'utf8')
    const nodes = parseErrorPage(page)
    expect(nodes[0], code).toMatchObject({ type: 'heading', depth: 1, children: [{ type: 'text', value: code }] })
    for (const text of nodes.flatMap(textsIn)) expect(text, code).not.toMatch(/`|\]\(|^\s*([|#]|- )|<!--/)
  }
})

/** The texts in a node, without code. */
function textsIn(node: Nodes): string[] {
  if (node.type === 'text') return [node.value]
  return 'children' in node ? node.children.flatMap(textsIn) : []
}
