import { createHash, randomUUID } from 'node:crypto'
import { mkdir, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { openGateway } from '../../../src/admin/gateway.ts'
import { loadConfig } from '../../../src/config/load.ts'
import { connectCaller, type StoryCaller } from '../../fixtures/callers.ts'
import { temporaryFolder } from '../../fixtures/folders.ts'
import { createKeptLog } from '../../fixtures/log.ts'
import { marked } from '../../fixtures/processes.ts'
import { serverProgram } from '../../fixtures/programs.ts'
import { stdioServers, withMark } from '../../fixtures/servers.ts'
import { startToolway } from '../../fixtures/toolway.ts'
import { until } from '../../fixtures/until.ts'

const notebook = serverProgram('notebook')
const idle = '300ms'
/** Several times as long as a process may be idle. */
const longIdle = () => sleep(1_500)

const read = async (caller: StoryCaller, tool: string) => {
  const { content } = await caller.call(tool)
  return JSON.parse((content as [{ text: string }])[0].text)
}

// At once, because each has a gateway of its own and waits for long.
test.concurrent.each(['legacy', 'modern'])(
  'V3, G2: what a %s stdio server keeps in memory survives an idle session, and its process ends after the session',
  async (era) => {
    await using open = new AsyncDisposableStack()
    const notes = { command: process.execPath, args: [notebook, era], idle }
    const toolway = open.use(await startToolway({ mcpServers: { notes } }))
    {
      await using caller = await connectCaller('v2', toolway)
      await caller.call('notes__write', { key: 'kept' })
      const { id } = await read(caller, 'notes__read')
      await longIdle()
      expect(await read(caller, 'notes__read')).toEqual({ id, keys: ['kept'] })
    }
    await until(() => toolway.servers().length === 0, { what: 'the process to be stopped' })
  },
)

test.concurrent("V3, G2: stateful servers of a client's file have a process for each caller, with its state, however long they are idle", async () => {
  await using open = new AsyncDisposableStack()
  const { path } = open.use(await temporaryFolder())
  // A notebook under the name of a server that is known to keep state, and the real server-memory.
  const browser = join(path, 'mcp-server-playwright')
  await writeFile(browser, `#!/bin/sh\nexec '${process.execPath}' '${notebook}' legacy\n`, { mode: 0o755 })
  // The path of the package says that it keeps state.
  const memory = join(path, 'node_modules/@modelcontextprotocol/server-memory')
  await mkdir(memory, { recursive: true })
  await symlink(serverProgram('memory'), join(memory, 'index.js'))
  const mark = randomUUID()
  const imported = {
    browser: withMark(mark, { command: browser }),
    memory: withMark(mark, { ...stdioServers.memory(join(path, 'memory.json')), args: [join(memory, 'index.js')] }),
  }
  const names = ['ann', 'bob']
  const keyOf = (name: string) => `twk_${name}_0123456789abcdefghijklmnopqrstuvwxyz`
  const keys = names.map((name) => ({
    id: name,
    hash: `sha256:${createHash('sha256').update(keyOf(name)).digest('hex')}`,
    agents: ['*'],
  }))
  const machine = {
    ...{ server: { port: 0 }, stores: { path: './state' }, discovery: { listDeadline: '30s' }, auth: { keys } },
    mcpServers: { browser: { idle }, memory: { idle } },
  }
  const paths = ['claude_desktop_config.json', 'machine.json'].map((name) => join(path, name))
  for (const [index, content] of [{ mcpServers: imported }, machine].entries())
    await writeFile(paths[index] as string, JSON.stringify(content))
  const loaded = await loadConfig({ paths, env: process.env, cwd: path })
  const gateway = open.use(await openGateway(loaded, { log: createKeptLog() }))
  const { url } = await gateway.listen()

  const callers = await Promise.all(names.map((name) => connectCaller('v2', { url, token: keyOf(name) })))
  for (const caller of callers) open.use(caller)
  for (const [index, caller] of callers.entries()) {
    const name = names[index] as string
    await caller.call('browser__write', { key: name })
    await caller.call('memory__create_entities', { entities: [{ name, entityType: 'person', observations: [] }] })
  }
  const states = () => Promise.all(callers.map((caller) => read(caller, 'browser__read')))
  const before = await states()
  expect(before.map(({ keys }) => keys)).toEqual([['ann'], ['bob']])
  // A process that was started only to be listed is stopped.
  await until(() => marked(mark).length === 4, { what: 'the other processes to be stopped' })
  const used = marked(mark)
  await longIdle()
  expect(await states()).toEqual(before)
  for (const caller of callers) expect(JSON.stringify(await caller.call('memory__read_graph'))).toContain('ann')
  expect(marked(mark)).toEqual(used)
})
