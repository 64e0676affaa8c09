import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { temporaryFolder } from '../../fixtures/folders.ts'
import { stdioServers } from '../../fixtures/servers.ts'
import { type LocalToolway, startToolway } from '../../fixtures/toolway.ts'
import { until } from '../../fixtures/until.ts'
import { asking, originOf } from '../admin/people.ts'

const open = new AsyncDisposableStack()
let files: string
let toolway: LocalToolway
let client: Client
const changed = { tools: 0 }

const noteTool = (changes: object = {}) => ({
  name: 'show_note',
  title: 'The note',
  description: 'Shows the note of the day.',
  fixed: { path: join(files, 'note.txt') },
  defaults: { head: 2 },
  hide: ['tail'],
  annotations: { readOnlyHint: true },
  tags: ['diary'],
  ...changes,
})

const configWith = (tools: object, more: object = {}) => ({
  mcpServers: { files: { ...stdioServers.filesystem(files), tools, ...more } },
  defaults: { expose: 'both' },
  audit: { arguments: 'full' },
})

const usual = (note: object = {}) => ({
  read_text_file: noteTool(note),
  list_allowed_directories: { hidden: true },
})

beforeAll(async () => {
  files = open.use(await temporaryFolder()).path
  writeFileSync(join(files, 'note.txt'), 'one\ntwo\nthree\n')
  writeFileSync(join(files, 'other.txt'), 'secret\n')
  toolway = open.use(await startToolway(configWith(usual())))
  await toolway.gateway.refresh()
  client = new Client({ name: 'story', version: '1.0.0' }, { versionNegotiation: { mode: 'legacy' } })
  client.setNotificationHandler('notifications/tools/list_changed', () => void changed.tools++)
  const headers = { authorization: `Bearer ${toolway.token}` }
  await client.connect(new StreamableHTTPClientTransport(new URL(toolway.url), { requestInit: { headers } }))
  open.defer(() => client.close())
})

afterAll(() => open.disposeAsync())

const call = (name: string, args: object = {}) => client.callTool({ name, arguments: { ...args } })
const textOf = ({ content }: { content?: unknown }) => (content as { text: string }[]).map(({ text }) => text).join()
const listed = async (name: string) => (await client.listTools()).tools.find((tool) => tool.name === name)

const admin = async (path: string) => (await asking(originOf(toolway), toolway.token)(path)).json

test('V15: callers see a tool as the operator has changed it', async () => {
  const tool = await listed('files__show_note')
  expect(tool).toMatchObject({
    title: 'The note',
    description: 'Shows the note of the day.',
    annotations: { readOnlyHint: true },
    _meta: { 'dev.toolway/tags': ['diary'] },
  })
  expect(Object.keys(tool?.inputSchema.properties ?? {})).toEqual(['head'])
  expect(tool?.inputSchema.properties?.head).toMatchObject({ default: 2 })
  expect(tool?.inputSchema.required).toEqual([])
  expect(await listed('files__read_text_file')).toBeUndefined()
})

test('V15: a call gets the fixed and the default values, by each name of the tool', async () => {
  expect(textOf(await call('files__show_note'))).toBe('one\ntwo')
  expect(textOf(await call('files__show_note', { head: 1 }))).toBe('one')
  expect(textOf(await call('files__read_text_file', { head: 1 }))).toBe('one')
  const asked = { server: 'files', tool: 'show_note', args: { head: 1 } }
  expect(textOf(await call('execute_tool', asked))).toBe('one')
  expect(textOf(await call('call_read_tool', asked))).toBe('one')
})

test.each(['path', 'PATH', 'tail'])(
  'V15: a caller that sets the argument %s of the operator is refused',
  async (name) => {
    const refused = await call('files__show_note', { [name]: name === 'tail' ? 1 : join(files, 'other.txt') })
    expect(refused.isError).toBe(true)
    expect(textOf(refused)).toContain(`mcpServers.files.tools.read_text_file.${name === 'tail' ? 'hide' : 'fixed'}`)
    expect(JSON.stringify(refused._meta)).toContain('INVALID_ARGUMENTS')
  },
)

test('V15: models find a tool by its new name and its tags', async () => {
  const found = textOf(await call('find_tool', { query: 'diary', detail: 'names' }))
  expect(JSON.parse(found).matches).toEqual(['files.show_note'])
  expect(textOf(await call('get_server_tools', { server: 'files', names: ['show_note'] }))).toContain('note of the day')
  expect(textOf(await call('list_tools', { server: 'files', detail: 'names' }))).not.toContain('read_text_file')
})

test('V15: a hidden tool is in no list and no search, and can be called', async () => {
  expect(await listed('files__list_allowed_directories')).toBeUndefined()
  expect(textOf(await call('find_tool', { query: 'list allowed directories', detail: 'names' }))).not.toContain(
    'allowed',
  )
  expect(textOf(await call('files__list_allowed_directories'))).toContain(files)
  const { tools } = await admin('tools?server=files&query=allowed_directories')
  expect(tools.map(({ tool }: { tool: string }) => tool)).toEqual(['list_allowed_directories'])
})

test("V15: the audit log has the server's name, the name for callers, and the arguments that were sent", async () => {
  await call('files__show_note', { head: 1 })
  await until(async () => (await admin('audit?tool=files.read_text_file')).rows.length > 0, { what: 'the record' })
  const { rows } = await admin('audit?tool=files.read_text_file&limit=1')
  const text = JSON.stringify(rows[0])
  expect(text).toContain('show_note')
  expect(text).toContain('note.txt')
})

test("V15: pins have the server's own definition, so that an override is not a change", async () => {
  const { pins } = await admin('pins')
  const pin = pins.find(({ label }: { label: string }) => label === 'files.read_text_file')
  expect(pin.state).not.toBe('changed')
  expect(pins.map(({ label }: { label: string }) => label)).not.toContain('files.show_note')
})

test('V15, G8: a changed override reaches clients, and the server keeps running', async () => {
  const [pid] = toolway.servers()
  const before = changed.tools
  await toolway.rewrite(configWith(usual({ name: 'today', description: 'Shows what is on today.' })))
  await toolway.gateway.reload()
  await until(() => changed.tools > before, { what: 'the client to learn of it' })
  expect((await listed('files__today'))?.description).toBe('Shows what is on today.')
  expect(textOf(await call('files__today', { head: 1 }))).toBe('one')
  expect(toolway.servers()).toEqual([pid])
  const { pins } = await admin('pins')
  expect(pins.filter(({ state }: { state: string }) => state === 'changed')).toEqual([])
})

test('V15, F9: guards and rules see the final arguments and the name of the server', async () => {
  const guards = [{ kind: 'path', arguments: ['path'], roots: [join(files, 'inside')] }]
  await toolway.rewrite(configWith(usual(), { guards }))
  await toolway.gateway.reload()
  expect(JSON.stringify((await call('files__show_note'))._meta)).toContain('mcpServers.files.guards[0]')
  await toolway.rewrite({ ...configWith(usual()), policy: { blockedTools: ['files.read_text_file'] } })
  await toolway.gateway.reload()
  expect(await listed('files__show_note')).toBeUndefined()
  expect(JSON.stringify((await call('files__show_note'))._meta)).toContain('policy.blockedTools[0]')
})
