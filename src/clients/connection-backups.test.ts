import { chmod, mkdir, readdir, readFile, stat, symlink, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { runs } from '../../tests/fixtures/runs.ts'
import { readSnapshot } from '../config/edit/file.ts'
import { jsonFile } from '../config/edit/written-json.fixture.ts'
import * as files from '../config/import/client-files.fixture.ts'
import { type ClientKind, clientLabels } from '../config/import/client-kind.ts'
import { ConnectionBackups } from './connection-backups.ts'
import { type ClientTransport, clientText, entryFor, shapes } from './entry.ts'
import { place } from './place.fixture.ts'

const way: ClientTransport = { kind: 'stdio', command: '/usr/bin/node', args: ['/opt/toolway/main.js', 'stdio'] }

async function connecting(content?: string | Buffer, client: ClientKind = 'cursor', name = 'mcp.json') {
  const { at } = await place(content === undefined ? {} : { [name]: content })
  const path = at(name)
  const connections = new ConnectionBackups(at('state'), () => 0)
  const connect = async (how = way) => {
    const before = await readSnapshot(path)
    const text = clientText(client, path, before.text).edited(entryFor(client, clientLabels[client], how))
    return connections.write(client, before, text)
  }
  const undo = (force = false) => connections.undo(client, path, force)
  return { at, path, connections, connect, undo, bytes: () => readFile(path) }
}

const real: readonly (readonly [ClientKind, string, string])[] = [
  ['claude-desktop', 'claude_desktop_config.json', files.claudeDesktop],
  ['claude-code', '.claude.json', files.claudeCode],
  ['cursor', 'mcp.json', files.cursor],
  ['vscode', 'mcp.json', files.vscode],
  ['codex', 'config.toml', files.codex],
  ['opencode', 'opencode.jsonc', files.opencode],
  ['opencode', 'opencode.json', files.opencodeNewer],
  ['gemini', 'settings.json', files.gemini],
  ['windsurf', 'mcp_config.json', files.windsurf],
  ['zed', 'settings.json', files.zed],
  ['cline', 'cline_mcp_settings.json', files.cline],
]

describe('B11: connect and undo', () => {
  test.each(real)('%s (%s): connect adds the entry, and undo restores every byte', async (client, name, content) => {
    const { connect, undo, bytes, path, at } = await connecting(content, client, name)
    await chmod(path, 0o644)
    await connect()
    const changed = (await bytes()).toString()
    expect(Object.keys(clientText(client, path, changed).servers)).toContain('toolway')
    for (const line of content.split('\n')) expect(changed).toContain(line)
    expect(await undo()).toEqual({ restored: true, forced: false })
    expect(await bytes()).toEqual(Buffer.from(content))
    expect((await stat(path)).mode & 0o777).toBe(0o644)
    expect(await readdir(at('state'))).toEqual([])
  })

  test('if there was no file before, undo removes it and the folders created for it', async () => {
    const { connect, undo, at } = await connecting(undefined, 'windsurf', 'home/.codeium/windsurf/mcp_config.json')
    await connect()
    expect(await undo()).toEqual({ restored: false, forced: false })
    expect(await readdir(at())).toEqual(['state'])
  })

  test('a folder that others have used meanwhile stays', async () => {
    const { connect, undo, at, path } = await connecting(
      undefined,
      'windsurf',
      'home/.codeium/windsurf/mcp_config.json',
    )
    await connect()
    await writeFile(join(dirname(path), 'theirs'), '')
    await undo()
    expect(await readdir(at('home', '.codeium', 'windsurf'))).toEqual(['theirs'])
  })

  test('connected twice, undone once, it is as it was before the first time', async () => {
    const { connect, undo, bytes } = await connecting('{"mcpServers": {}}')
    await connect()
    await connect({ ...way, args: ['other'] })
    await undo()
    expect((await bytes()).toString()).toBe('{"mcpServers": {}}')
    await expect(undo()).rejects.toThrow('Nothing to undo')
  })

  test('a file that was changed since is not restored unless forced; then a copy is kept', async () => {
    const { connect, undo, bytes, path } = await connecting('{}')
    await connect()
    await writeFile(path, '{"theirs": 1}')
    await expect(undo()).rejects.toThrow('has changed since it was connected')
    expect((await bytes()).toString()).toBe('{"theirs": 1}')
    const { forced, kept } = await undo(true)
    expect(forced).toBe(true)
    expect(await readFile(kept as string, 'utf8')).toBe('{"theirs": 1}')
    expect((await bytes()).toString()).toBe('{}')
  })

  test('B11: connecting again after a change by others keeps the original and what they wrote', async () => {
    const { connect, undo, bytes, path, at } = await connecting('{"mcpServers": {"mine": {"command": "x"}}}')
    await connect()
    const theirs = (await bytes()).toString().replace('mine', 'theirs')
    await writeFile(path, theirs)
    expect(await connect({ ...way, args: ['other'] })).toMatchObject({ changed: true })
    expect(await connect({ ...way, args: ['third'] })).toMatchObject({ changed: true })
    const copies = (await readdir(at('state'))).filter((name) => name.endsWith('.kept'))
    expect(await Promise.all(copies.map((name) => readFile(at('state', name), 'utf8')))).toEqual([theirs])
    const connected = (await bytes()).toString()
    await expect(undo()).rejects.toThrow('has changed since it was connected')
    const { kept } = await undo(true)
    expect((await bytes()).toString()).toBe('{"mcpServers": {"mine": {"command": "x"}}}')
    expect(await readFile(kept as string, 'utf8')).toBe(connected)
    expect((await readdir(at('state'))).filter((name) => name.endsWith('.kept'))).toHaveLength(2)
  })

  test('B11: connecting a file without the entry starts from that file and keeps the earlier original', async () => {
    const { connect, undo, bytes, path, at } = await connecting('{"first": 1}')
    await connect()
    await writeFile(path, '{"second": 2}')
    expect(await connect()).toMatchObject({ changed: false })
    await undo()
    expect((await bytes()).toString()).toBe('{"second": 2}')
    const [copy, ...others] = await readdir(at('state'))
    expect(others).toEqual([])
    expect(await readFile(at('state', copy as string), 'utf8')).toBe('{"first": 1}')
  })

  test('a backup that is damaged changes nothing', async () => {
    const { connect, undo, bytes } = await connecting('{}')
    const { backup } = await connect()
    await writeFile(backup, 'damaged')
    const connected = await bytes()
    await expect(undo()).rejects.toThrow('is damaged or missing; nothing was changed')
    expect(await bytes()).toEqual(connected)
  })

  test('backups are for their owner alone, because files of clients hold secrets', async () => {
    const { connect, at } = await connecting('{"mcpServers": {"a": {"env": {"TOKEN": "x"}}}}')
    const { backup } = await connect()
    expect((await stat(backup)).mode & 0o777).toBe(0o600)
    expect((await stat(at('state'))).mode & 0o777).toBe(0o700)
  })

  test('behind a symbolic link, too', async () => {
    const { at } = await place({ 'dotfiles/mcp.json': '{}' })
    await mkdir(at('home'))
    await symlink('../dotfiles/mcp.json', at('home', 'mcp.json'))
    const connections = new ConnectionBackups(at('state'), () => 0)
    await connections.write('cursor', await readSnapshot(at('home', 'mcp.json')), '{"a": 1}')
    expect(await readFile(at('dotfiles', 'mcp.json'), 'utf8')).toBe('{"a": 1}')
    await connections.undo('cursor', at('home', 'mcp.json'), false)
    expect(await readFile(at('dotfiles', 'mcp.json'), 'utf8')).toBe('{}')
  })

  test.each(['cursor', 'vscode', 'zed', 'opencode'] as const)(
    'undo restores every byte of any file of %s',
    async (client) => {
      const key = shapes[client].servers[0] as string
      const { connect, undo, bytes, path } = await connecting('{}', client, 'settings.json')
      await fc.assert(
        fc.asyncProperty(jsonFile(key), async ({ text, mark, value }) => {
          fc.pre(client !== 'opencode' || !Object.hasOwn((value[key] ?? {}) as object, 'servers'))
          const before = Buffer.from(mark + text)
          await writeFile(path, before)
          await connect()
          const after = await bytes()
          expect(after.equals(before)).toBe(false)
          expect(after.subarray(0, 3).equals(Buffer.from('\ufeff'))).toBe(mark !== '')
          await undo()
          expect((await bytes()).equals(before)).toBe(true)
        }),
        runs(4, 1_000),
      )
    },
  )
})
