import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { connectCaller, type Params, type StoryCaller } from '../../fixtures/callers.ts'
import { connect, stdioProgram } from '../../fixtures/clients.ts'
import { writeConfig } from '../../fixtures/config-file.ts'
import { type Folder, temporaryFolder } from '../../fixtures/folders.ts'
import { toolwayWords } from '../../fixtures/programs.ts'
import { type ServerEntry, stdioServers } from '../../fixtures/servers.ts'
import { type LocalToolway, startToolway } from '../../fixtures/toolway.ts'
import { until } from '../../fixtures/until.ts'

/** A server as `npx -y` starts it the first time: nothing until it is downloaded, then the real one in the same process. */
const cold = (download: string, entry: ServerEntry): ServerEntry => {
  const script = 'touch "$1.begun"; until [ -e "$1.done" ]; do sleep 0.1; done; shift; exec "$@"'
  return {
    ...entry,
    command: 'sh',
    args: ['-c', script, 'npx', download, entry.command, ...(entry.args as string[])],
  }
}

/** In the order in which they start. */
type ServerName = 'one' | 'two' | 'three'

const downloadIn = (folder: string, name: ServerName) => join(folder, `download-${name}`)
const finishDownload = (folder: string, name: ServerName) => writeFile(`${downloadIn(folder, name)}.done`, '')

/** Lets a client wait for a moment for a server that it has started. */
async function finishAwaitedDownload(folder: string, name: ServerName): Promise<void> {
  await until(() => existsSync(`${downloadIn(folder, name)}.begun`), { what: 'the server to be started' })
  await pause(500)
  await finishDownload(folder, name)
}

const serversIn = (folder: string) => ({
  one: cold(downloadIn(folder, 'one'), stdioServers.memory(join(folder, 'memory.json'))),
  two: cold(downloadIn(folder, 'two'), stdioServers.everything()),
  three: cold(downloadIn(folder, 'three'), stdioServers.filesystem(folder)),
})

// Unset, so that the defaults count: the fixture gives lists more time than users have.
const discovery = { listDeadline: undefined }
const open = new AsyncDisposableStack()

interface Missing {
  readonly server: string
  readonly status: string
}

const missingOf = (result: Params) => (result._meta as Params | undefined)?.['dev.toolway/missing'] as Missing[]
const serversOf = (tools: unknown) =>
  new Set(
    (tools as { name: string }[])
      .map(({ name }) => name.split('__')[0])
      .filter((name) => /^(one|two|three)$/.test(name ?? '')),
  )

/** When each of some questions was answered, in their order. */
const order: string[] = []
const noted = async <T>(what: string, work: Promise<T>): Promise<T> => {
  const result = await work
  order.push(what)
  return result
}

let folder: Folder
let toolway: LocalToolway
let legacy: StoryCaller
let modern: StoryCaller
let first: Awaited<ReturnType<typeof firstUse>>

/** One server after another starts, each when the one before has answered, and the second when callers have waited for it. */
async function finishDownloads() {
  const answered = (what: string) => until(() => order.includes(what), { what: `an answer of ${what}` })
  const hasProgress = (caller: StoryCaller) => caller.told('notifications/progress').length > 1
  await answered('list_servers')
  await finishDownload(folder.path, 'one')
  await answered('one')
  await until(() => hasProgress(legacy) && hasProgress(modern), { what: 'progress of the calls that wait' })
  await finishDownload(folder.path, 'two')
  await answered('two')
  await finishDownload(folder.path, 'three')
}

/** Everything that somebody may do first, at the same time, with servers that nobody has started before. */
async function firstUse() {
  const run = (server: string, tool: string, args: Params) => ({ server, tool, args })
  const file = { path: folder.path }
  const downloads = finishDownloads()
  const [servers, quick, called, calledModern, executed, batch, tools, brief, late, list, prompt] = await Promise.all([
    noted('list_servers', legacy.call('list_servers')),
    noted('one', modern.call('one__read_graph')),
    noted('two', legacy.call('two__echo', { message: 'legacy' }, { progress: true })),
    modern.call('two.echo', { message: 'modern' }, { progress: true }),
    legacy.call('execute_tool', run('two', 'echo', { message: 'executed' })),
    modern.call(
      'execute_tools',
      { calls: [run('one', 'read_graph', {}), run('two', 'echo', { message: 'batch' })] },
      { progress: true },
    ),
    legacy.call('get_server_tools', { server: 'two', names: ['echo'] }),
    modern.call('list_tools', { server: 'two' }),
    noted('three', legacy.call('three__list_directory', file)),
    modern.request('tools/list'),
    legacy.request('prompts/get', { name: 'two__simple-prompt' }),
  ])
  await downloads
  return { servers, quick, called, calledModern, executed, batch, tools, brief, late, list, prompt }
}

/** A client that connects, lists, calls and leaves, as frameworks do for each run. */
async function oneShot() {
  const home = open.use(await temporaryFolder())
  const mcpServers = { two: serversIn(home.path).two }
  const configFile = await writeConfig(home.path, { mcpServers, discovery }, 'one-shot')
  await using client = await connect('v1', stdioProgram(configFile))
  const [tools] = await Promise.all([client.listTools(), finishAwaitedDownload(home.path, 'two')])
  return { tools, result: await client.callTool('two__echo', { message: 'one shot' }) }
}

/** A list that may not wait, and the next one that may. */
async function hurried() {
  const home = open.use(await temporaryFolder())
  const mcpServers = { two: serversIn(home.path).two, one: serversIn(home.path).one }
  const config = { mcpServers, discovery: { listDeadline: '100ms' } }
  const hasty = open.use(await startToolway(config, { folder: home }))
  const client = open.use(await connectCaller('v1', hasty))
  const stateless = open.use(await connectCaller('modern', hasty))
  const before = await Promise.all([client.request('tools/list'), stateless.request('tools/list')])
  const unknown = await client.call('nobody__echo', {}).catch((error: unknown) => error)
  const servers: unknown[] = []
  for (const name of ['two', 'one'] as const) {
    const changes = () => client.told('notifications/tools/list_changed').length
    const before = changes()
    await finishDownload(home.path, name)
    await until(() => changes() > before, { what: `a list_changed for ${name}` })
    const listed = async () => serversOf((await client.request('tools/list')).tools)
    await until(async () => (await listed()).has(name), { what: `the tools of ${name}` })
    servers.push([...(await listed())])
  }
  await Promise.all([client.call('two__echo', { message: 'now' }), client.call('one__read_graph')])
  return { before, unknown, servers, after: await client.request('tools/list') }
}

async function commandLine() {
  const home = open.use(await temporaryFolder())
  const mcpServers = { two: serversIn(home.path).two }
  const configFile = await writeConfig(home.path, { mcpServers, discovery }, 'command-line')
  const words = ['tools', '--config', configFile, '--json']
  const [{ stdout }] = await Promise.all([
    promisify(execFile)(process.execPath, [...toolwayWords, ...words]),
    finishAwaitedDownload(home.path, 'two'),
  ])
  return JSON.parse(stdout) as { tools: unknown }
}

let shot: Awaited<ReturnType<typeof oneShot>>
let hasty: Awaited<ReturnType<typeof hurried>>
let printed: Awaited<ReturnType<typeof commandLine>>

beforeAll(async () => {
  folder = open.use(await temporaryFolder())
  toolway = open.use(await startToolway({ mcpServers: serversIn(folder.path), discovery }, { folder }))
  ;[legacy, modern] = await Promise.all([connectCaller('v1', toolway), connectCaller('modern', toolway)])
  open.use(legacy)
  open.use(modern)
  ;[first, shot, hasty, printed] = await Promise.all([firstUse(), oneShot(), hurried(), commandLine()])
}, 120_000)

afterAll(() => open.disposeAsync(), 30_000)

const text = (result: Params) => (result.content as { text: string }[])[0]?.text

test('V2: the first call of a server waits for it to start, in both eras and through the meta-tools', () => {
  expect(text(first.called)).toBe('Echo: legacy')
  expect(text(first.calledModern)).toBe('Echo: modern')
  expect(text(first.executed)).toBe('Echo: executed')
  expect(first.batch.structuredContent).toMatchObject({ results: [{ ok: true }, { ok: true }] })
  expect(first.late.isError).not.toBe(true)
  expect(first.prompt).toHaveProperty('messages')
})

test.each(['legacy', 'modern'] as const)('V2: a %s caller that asked for progress gets what it waits for', (era) => {
  const told = (era === 'legacy' ? legacy : modern).told('notifications/progress')
  expect(told.length).toBeGreaterThan(1)
  expect(told).toContainEqual(expect.objectContaining({ message: expect.stringContaining('two') }))
})

test('V2: the progress of one token only grows, in a batch too', () => {
  for (const caller of [legacy, modern]) {
    const byToken = Map.groupBy(caller.told('notifications/progress'), ({ progressToken }) => progressToken)
    for (const told of byToken.values()) {
      const numbers = told.map(({ progress }) => progress as number)
      expect(numbers).toEqual([...new Set(numbers)].toSorted((a, b) => a - b))
    }
  }
})

test('V2, G2: a slow server delays no call of another', () => {
  expect(order.indexOf('one')).toBeLessThan(order.indexOf('two'))
  expect(order.indexOf('two')).toBeLessThan(order.indexOf('three'))
})

test('V2, T4: a server that is starting is neither healthy nor stale', () => {
  const { servers } = first.servers.structuredContent as { servers: { name: string; status: string }[] }
  const statuses = Object.fromEntries(servers.map(({ name, status }) => [name, status]))
  expect(statuses).toMatchObject({ two: 'starting', three: 'starting' })
  expect(order[0]).not.toBe('two')
})

test('V2: get_server_tools and list_tools of a server wait for it', () => {
  expect(first.tools.structuredContent).toMatchObject({ returned: 1, tools: [{ name: 'echo' }] })
  expect((first.brief.structuredContent as { total: number }).total).toBeGreaterThan(5)
})

test('V2: the first list has what has started by its deadline, and names what has not', () => {
  const listed = serversOf(first.list.tools)
  expect([...listed]).toEqual(expect.arrayContaining(['one', 'two']))
  const lacking = (missingOf(first.list) ?? []).map(({ server }) => server)
  expect([...listed, ...lacking].toSorted()).toEqual(['one', 'three', 'two'])
})

test('V2: a list that may not wait says in _meta what it lacks, and the next one has it', () => {
  for (const list of hasty.before) {
    expect(missingOf(list)).toEqual(
      expect.arrayContaining([expect.objectContaining({ server: 'two', status: 'starting' })]),
    )
  }
  expect(hasty.before[1]?.ttlMs).toBe(0)
  expect(missingOf(hasty.after)).toBeUndefined()
  expect(serversOf(hasty.after.tools)).toEqual(new Set(['two', 'one']))
  expect(hasty.unknown).toMatchObject({ code: -32602, data: { code: 'SERVER_NOT_FOUND' } })
})

test('V2, F4: a client that waits for list changes gets one as each server becomes ready', () => {
  expect(hasty.servers).toEqual([['two'], ['two', 'one']])
})

test('V2: only as many servers start at a time as there are cores', async () => {
  const home = open.use(await temporaryFolder())
  const cores = availableParallelism()
  const names = Array.from({ length: cores + 1 }, (_, number) => `server${number}`)
  const entry = (name: string) => cold(join(home.path, name), stdioServers.filesystem(home.path))
  const mcpServers = Object.fromEntries(names.map((name) => [name, entry(name)]))
  await using _ = await startToolway({ mcpServers, discovery: { mode: 'startup' } })
  const begun = () => names.filter((name) => existsSync(join(home.path, `${name}.begun`))).length
  await until(() => begun() >= cores, { what: 'the first servers to start' })
  await pause(500)
  expect(begun()).toBe(cores)
})

test('V2: a one-shot client over stdio gets the whole list and its answer', () => {
  expect(serversOf(shot.tools)).toEqual(new Set(['two']))
  expect(shot.result.content).toEqual([{ type: 'text', text: 'Echo: one shot' }])
})

test('V2: toolway tools waits for servers that were never started before', () => {
  expect(serversOf(printed.tools)).toEqual(new Set(['two']))
})

test('V2, S1: a second start lists at once what is remembered, without starting anything, and a call waits again', async () => {
  await toolway[Symbol.asyncDispose]()
  await using again = await startToolway({ mcpServers: serversIn(folder.path), discovery }, { folder })
  await using client = await connectCaller('v1', again)
  const list = await client.request('tools/list')
  expect(serversOf(list.tools)).toEqual(new Set(['one', 'two', 'three']))
  expect(missingOf(list)).toBeUndefined()
  expect(again.servers()).toEqual([])
  expect(text(await client.call('one__read_graph', {}, { progress: true }))).toContain('entities')
})
