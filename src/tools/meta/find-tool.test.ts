import { expect, test } from 'vitest'
import * as z from 'zod'
import { createTestGateway, refusalOf, structuredOf } from '../access.fixture.ts'
import { defineTool } from '../define-tool.ts'
import { echo } from '../tools.fixture.ts'

const long = `Reads a text file. ${'It is a good tool. '.repeat(20)}\nSecond line.`
const gateway = createTestGateway({
  servers: {
    files: [echo('read_file', long), echo('write_file', 'Writes a file.'), echo('find_file', 'Finds a file by name.')],
    web: [echo('read_page', 'Reads a page.')],
  },
})

test.each(['find_tool', 'search_tools'])(
  'T4: %s gives the best matches first, briefly, and how many there were',
  async (tool) => {
    const answer = structuredOf<{ matches: { description: string }[] }>(
      await gateway.ask(tool, { query: 'read file', limit: 2 }),
    )
    expect(answer).toMatchObject({
      matches: [
        { server: 'files', name: 'read_file' },
        { server: 'files', name: 'write_file' },
      ],
      returned: 2,
      total: 4,
      hint: 'Showing 2 of 4 matches; use a more specific query, set server or raise limit.',
    })
    expect(Object.keys(JSON.parse(JSON.stringify(answer))).sort()).toEqual(['hint', 'matches', 'returned', 'total'])
    expect(Object.keys(answer.matches[0]!).sort()).toEqual(['description', 'name', 'server'])
    expect(answer.matches[0]?.description.length).toBeLessThanOrEqual(160)
  },
)

test('T4: full detail adds the schema and the whole description', async () => {
  const answer = structuredOf<{ matches: object[] }>(await gateway.ask('find_tool', { query: 'text', detail: 'full' }))
  expect(answer.matches).toEqual([
    {
      server: 'files',
      name: 'read_file',
      description: long,
      inputSchema: { type: 'object', properties: {}, additionalProperties: {} },
    },
  ])
})

test('T4: a search may be limited to one server, never finds meta-tools, and refuses an unknown server', async () => {
  expect(structuredOf(await gateway.ask('find_tool', { query: 'read', server: 'web' }))).toEqual({
    matches: [{ server: 'web', name: 'read_page', description: 'Reads a page.' }],
    returned: 1,
    total: 1,
  })
  expect(structuredOf(await gateway.ask('find_tool', { query: 'gateway status health' }))).toEqual({
    matches: [],
    returned: 0,
    total: 0,
    hint: 'No tool matches these words; try other words, or call list_servers to see what is available.',
  })
  const refusal = await refusalOf(gateway.ask('find_tool', { query: 'read', server: 'wbe' }))
  expect(refusal).toMatchObject({ code: 'SERVER_NOT_FOUND', message: 'There is no server "wbe"; did you mean "web"?' })
})

test('T4: where nothing matches, the words of tools that come near are named, else another way', async () => {
  const hintOf = async (args: object) => structuredOf<{ hint?: string }>(await gateway.ask('find_tool', args)).hint
  expect(await hintOf({ query: 'wrote fiel' })).toBe('No tool matches these words; did you mean "write" or "file"?')
  expect(await hintOf({ query: 'zebra', server: 'web' })).toBe(
    'No tool on the server web matches these words; try other words, or search all servers.',
  )
  expect(await hintOf({ query: 'read', server: 'files', limit: 1 })).toBeUndefined()
  expect(await hintOf({ query: 'file', server: 'files', limit: 1 })).toBe(
    'Showing 1 of 3 matches; use a more specific query or raise limit.',
  )
})

test('F3: search_tools is an alias: the call is recorded as find_tool', async () => {
  await gateway.ask('search_tools', { query: 'read' })
  expect(gateway.calls.at(-1)?.entry.name).toBe('find_tool')
})

test('E2: an empty query and a limit out of bounds are refused', async () => {
  for (const args of [
    { query: '' },
    { query: 'a', limit: 0 },
    { query: 'a', limit: 51 },
    { query: 'a', detail: 'all' },
  ]) {
    expect((await refusalOf(gateway.ask('find_tool', args))).code).toBe('INVALID_ARGUMENTS')
  }
})

test('W6: the cheapest detail lists names alone, and brief ones say which tools only read', async () => {
  const read = defineTool({ name: 'read', description: 'Reads.', input: z.object({}), readOnly: true, run: () => 'r' })
  const gateway = createTestGateway({ servers: { files: [read, echo('write')] } })
  const ask = async (tool: string, args: object) => structuredOf(await gateway.ask(tool, args))
  expect((await ask('list_tools', { server: 'files', detail: 'names' })).tools).toEqual(['files.read', 'files.write'])
  expect((await ask('list_tools', { server: 'files' })).tools).toMatchObject([
    { name: 'read', readOnly: true },
    { name: 'write', description: 'Echoes as write.' },
  ])
  expect((await ask('find_tool', { query: 'read', server: 'files', detail: 'names' })).matches).toContain('files.read')
})
