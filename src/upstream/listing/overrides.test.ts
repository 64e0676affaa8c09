import { expect, test } from 'vitest'
import { configSchema, type ServerConfig } from '../../config/schema.ts'
import { entryOf } from '../../core/call.fixture.ts'
import { ToolwayError } from '../../core/errors.ts'
import { overrideKey, type ToolOverride, toolOverrides } from '../../core/tool-overrides.ts'
import { Json } from '../../json/json.ts'
import { applyOverride, overriddenEntry, overrideProblems } from './overrides.ts'

const selectionOf = (tools: object) => {
  const { mcpServers } = configSchema.parse({ mcpServers: { github: { command: 'x', tools } } })
  return (mcpServers.github as ServerConfig).tools
}
const overrideOf = (written: object, tool = 'create_issue') =>
  toolOverrides(selectionOf({ [overrideKey(tool)]: written })).get(tool) as ToolOverride

const definition = {
  name: 'create_issue',
  title: 'Create issue',
  description: 'Creates an issue.',
  annotations: { openWorldHint: true, readOnlyHint: true },
  inputSchema: {
    type: 'object',
    properties: {
      repo: { type: 'string' },
      title: { type: 'string', description: 'Its title' },
      state: { type: 'string' },
      assignee: { type: 'string' },
    },
    required: ['repo', 'title', 'state'],
    additionalProperties: false,
  },
  vendor: 1,
}

const overridden = (written: object, listed: readonly string[] = []) =>
  overriddenEntry(
    entryOf({ server: 'github', name: 'create_issue', definition }),
    overrideOf(written),
    new Set(['create_issue', ...listed]),
  )

test('V15: applyOverride replaces texts, merges annotations and rewrites the schema; other members stay', () => {
  const override = overrideOf({
    ...{ title: 'Bug', description: 'Files a bug.', annotations: { readOnlyHint: false }, hide: ['assignee'] },
    ...{ fixed: { repo: 'acme/app' }, defaults: { state: 'open' } },
  })
  expect(applyOverride(definition, override)).toEqual({
    name: 'create_issue',
    title: 'Bug',
    description: 'Files a bug.',
    annotations: { openWorldHint: true, readOnlyHint: false },
    inputSchema: {
      type: 'object',
      properties: {
        title: { type: 'string', description: 'Its title' },
        state: { type: 'string', default: 'open' },
      },
      required: ['title'],
      additionalProperties: false,
    },
    vendor: 1,
  })
  expect(applyOverride(definition, overrideOf({})).inputSchema).toBe(definition.inputSchema)
})

test('V15: alternatives in a schema do not ask for arguments that callers cannot set', () => {
  const inputSchema = {
    type: 'object',
    properties: { a: {}, b: {} },
    anyOf: [{ required: ['a'] }, { required: ['b'] }],
  }
  const changed = applyOverride({ inputSchema }, overrideOf({ fixed: { a: 1 } }))
  expect(changed.inputSchema).toEqual({
    ...{ type: 'object', properties: { b: {} } },
    anyOf: [{ required: [] }, { required: ['b'] }],
  })
})

test('V15: a required argument without a value stays visible, and that is a problem', () => {
  const hide = ['title', 'assignee']
  const { properties } = applyOverride(definition, overrideOf({ hide })).inputSchema ?? {}
  expect(Object.keys(properties as object)).toEqual(['repo', 'title', 'state'])
  expect(overrideProblems('github', selectionOf({ create_issue: { hide } }), [definition])).toEqual([
    'mcpServers.github.tools.create_issue.hide: title is required, so it stays visible; set it in fixed or defaults',
  ])
})

test('V15: unknown tools and arguments, and a name that the server uses itself, are problems with a near miss', () => {
  const tools = { create_isue: {}, create_issue: { name: 'list', fixed: { repoo: 1 }, hide: ['other'] } }
  expect(overrideProblems('github', selectionOf(tools), [definition, { name: 'list' }])).toEqual([
    'mcpServers.github.tools.create_isue: github has no tool create_isue; did you mean "create_issue"?',
    'mcpServers.github.tools.create_issue.name: github itself has a tool list; create_issue keeps its name',
    'mcpServers.github.tools.create_issue.hide: create_issue declares no argument other',
    'mcpServers.github.tools.create_issue.fixed: create_issue declares no argument repoo; did you mean "repo"?',
  ])
  expect(overridden({ name: 'list' }, ['list']).override?.name).toBeUndefined()
  expect(overridden({ name: 'file_bug' }, ['list']).override?.name).toBe('file_bug')
})

test("V15: an overridden entry keeps the server's name and definition for rules, pins and audit", () => {
  const { name, verbatim, override } = overridden({ name: 'file_bug', description: 'x', tags: ['a'], hidden: true })
  expect([name, verbatim]).toEqual(['create_issue', definition])
  expect(override).toMatchObject({ name: 'file_bug', tags: ['a'], hidden: true })
})

test('V15: values are added to arguments whose bytes stay as they are', () => {
  const { override } = overridden({ fixed: { repo: 'acme/"app"' }, defaults: { state: 'open', n: [1] } })
  const complete = (text: string) => override?.complete(Json.raw(Buffer.from(text))).bytes.toString()
  expect(complete('{}')).toBe('{"state":"open","n":[1],"repo":"acme/\\"app\\""}')
  expect(complete(' { } ')).toBe('{"state":"open","n":[1],"repo":"acme/\\"app\\"" } ')
  expect(complete('{ "title" : 1.10, "state":null,"big": 12345678901234567890 }')).toBe(
    '{"n":[1],"repo":"acme/\\"app\\"", "title" : 1.10, "state":null,"big": 12345678901234567890 }',
  )
  const exact = override?.complete(Json.raw(Buffer.from('{"big":12345678901234567890}')))
  expect(JSON.stringify(exact?.exact)).toContain('12345678901234567890')
  const same = Json.of({ repo: 1, state: 2, n: 3 })
  expect(override?.complete(same)).toBe(same)
})

test.each(['repo', 'REPO', 'ｒepo', 'assignee'])(
  'V15: a caller that sets %s is refused with the setting',
  (argument) => {
    const { override } = overridden({ name: 'file_bug', fixed: { repo: 'x' }, hide: ['assignee'] })
    override?.check({ title: 'a', other: 1 })
    const error = (() => {
      try {
        override?.check({ [argument]: 'y' })
      } catch (thrown) {
        return ToolwayError.from(thrown)
      }
    })()
    expect(error?.code).toBe('INVALID_ARGUMENTS')
    const list = argument === 'assignee' ? 'hide' : 'fixed'
    expect(error?.message).toContain(`(mcpServers.github.tools.create_issue.${list})`)
    expect(error?.message).toContain('github.file_bug')
  },
)

test('V15: numbers that a double cannot hold stay exact in an overridden schema', () => {
  const exactSchema = { type: 'object', properties: { a: { maximum: 1 }, repo: {} }, required: ['a', 'repo'] }
  const entry = overriddenEntry(entryOf({ definition, exactSchema }), overrideOf({ fixed: { repo: 1 } }), new Set())
  expect(entry.exactSchema).toEqual({ type: 'object', properties: { a: { maximum: 1 } }, required: ['a'] })
})

test('V15: a tool that is called include is written with an equals sign', () => {
  const selection = selectionOf({ include: ['i*'], '=include': { name: 'take' }, '==odd': { hidden: true } })
  expect(selection.include).toEqual(['i*'])
  expect([...toolOverrides(selection)].map(([tool, { name }]) => [tool, name])).toEqual([
    ['include', 'take'],
    ['=odd', undefined],
  ])
  expect(['include', '=odd', 'read'].map(overrideKey)).toEqual(['=include', '==odd', 'read'])
})
