import { chmod, mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { receiver, status } from '../../../src/tools/sinks/receiver.fixture.ts'
import { connect, type TestClient } from '../../fixtures/clients.ts'
import { startCommand } from '../../fixtures/command.ts'
import { temporaryFolder } from '../../fixtures/folders.ts'
import { alive } from '../../fixtures/processes.ts'
import { stdioServers } from '../../fixtures/servers.ts'
import { startToolway } from '../../fixtures/toolway.ts'

const plugin = `
import { defineSink, defineTool } from 'toolway'
import * as z from 'zod'

export const where = defineTool({
  name: 'where',
  description: 'Tells in which process it runs.',
  input: z.object({ word: z.string().describe('To be repeated.') }),
  isolated: true,
  run: ({ word }) => ({ word, pid: process.pid }),
})

export const wiki = defineSink({
  name: 'wiki',
  description: 'Pages of a wiki.',
  write: ({ id, content }) => ({ uri: \`https://wiki.example/\${id}\`, length: content.length }),
})
`

interface Pointer {
  readonly uri: string
  readonly id: string
  readonly [fact: string]: unknown
}

async function write(client: TestClient, sink: string, content: string, metadata = {}): Promise<Pointer> {
  const { structuredContent, isError, content: said } = await client.callTool(`sink__${sink}`, { content, metadata })
  expect(isError ?? false, JSON.stringify(said)).toBe(false)
  return structuredContent as unknown as Pointer
}

// At once, because each test has a gateway of its own and waits for its processes.
describe.concurrent('sinks and plugins', () => {
  test('J4, J1: what an agent makes ends where the operator wants it, and a pointer leads there', async () => {
    await using folder = await temporaryFolder()
    await using hook = await receiver(status(503), status(201, { location: '/artifacts/1' }))
    const notes = join(folder.path, 'notes')
    await mkdir(notes)
    await writeFile(join(folder.path, 'plugin.ts'), plugin, { mode: 0o644 })
    await using toolway = await startCommand(
      {
        mcpServers: { files: stdioServers.filesystem(notes) },
        native: { plugins: ['./plugin.ts'] },
        sinks: {
          reports: { kind: 'file', path: './out', template: '{date}/{agent}-{metadata.title}.md' },
          hook: { kind: 'webhook', url: hook.url },
          notes: {
            kind: 'tool',
            tool: 'files.write_file',
            arguments: { path: `${notes}/{id}.txt`, content: '{content}' },
          },
        },
      },
      { folder },
    )
    await using client = await connect('v2', { endpoint: toolway })

    const report = await write(client, 'reports', '# Report', { title: '../../../escape' })
    expect(fileURLToPath(report.uri).startsWith(`${folder.path}/out/20`)).toBe(true)
    expect(await readFile(fileURLToPath(report.uri), 'utf8')).toBe('# Report')

    const posted = await write(client, 'hook', 'hello')
    expect(posted).toMatchObject({ uri: `${hook.url}/1`, attempts: 2 })
    expect(hook.deliveries.map(({ headers }) => headers['idempotency-key'])).toEqual([posted.id, posted.id])

    const note = await write(client, 'notes', 'by {id}', { id: 'n1' })
    expect(await readFile(join(notes, 'n1.txt'), 'utf8')).toBe('by {id}')
    expect(note.tool).toBe('files.write_file')

    expect(await write(client, 'wiki', 'abc', { id: 'p1' })).toMatchObject({
      uri: 'https://wiki.example/p1',
      length: 3,
    })

    const { structuredContent } = await client.callTool('native__where', { word: 'x' })
    const { pid, word } = structuredContent as { pid: number; word: string }
    expect(word).toBe('x')
    expect(toolway.children()).toContain(pid)
    const { survivors } = await toolway.stop()
    expect([survivors, alive(pid)]).toEqual([[], false])
  })

  test('G6: a sink cannot call a tool that its caller may not use', async () => {
    await using folder = await temporaryFolder()
    await using toolway = await startToolway(
      {
        mcpServers: { files: stdioServers.filesystem(folder.path) },
        agents: { writer: { allow: { servers: ['sink'] } } },
        defaults: { agent: 'writer', denyOnMissingAgent: false },
        sinks: {
          notes: {
            kind: 'tool',
            tool: 'files.write_file',
            arguments: { path: `${folder.path}/x`, content: '{content}' },
          },
        },
      },
      { folder },
    )
    await using client = await connect('v2', { endpoint: toolway })
    const { isError, _meta } = await client.callTool('sink__notes', { content: 'x' })
    expect([isError, _meta?.['dev.toolway/error']]).toEqual([
      true,
      expect.objectContaining({ code: 'DENIED_BY_POLICY', server: 'files' }),
    ])
    await expect(readFile(join(folder.path, 'x'))).rejects.toThrow('ENOENT')
  })

  test('J4: a plugin that others can write to keeps Toolway from starting, and it says what to do', async () => {
    await using folder = await temporaryFolder()
    const file = join(folder.path, 'plugin.ts')
    await writeFile(file, plugin)
    await chmod(file, 0o666)
    await expect(startCommand({ native: { plugins: ['./plugin.ts'] } }, { folder })).rejects.toThrow(
      `chmod go-w ${file}`,
    )
  })
})
