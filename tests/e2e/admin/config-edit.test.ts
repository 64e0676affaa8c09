import { readFile, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { connect } from '../../fixtures/clients.ts'
import { temporaryFolder } from '../../fixtures/folders.ts'
import { alive } from '../../fixtures/processes.ts'
import { type ServerEntry, stdioServers } from '../../fixtures/servers.ts'
import { type LocalToolway, startToolway } from '../../fixtures/toolway.ts'
import { asking, originOf } from './people.ts'

let gateway: LocalToolway
let ask: ReturnType<typeof asking>
beforeAll(async () => {
  gateway = await startToolway({
    history: {},
    mcpServers: { probe: { ...stdioServers.probe(), env: { API_TOKEN: 'inline-secret-1' } } },
  })
  ask = asking(originOf(gateway), gateway.token)
  await writeFile(gateway.configFile, (await text()).replace('{', '{ // mine\n'))
})
afterAll(() => gateway[Symbol.asyncDispose]())

const text = () => readFile(gateway.configFile, 'utf8')
const pasted = () =>
  JSON.stringify({ mcpServers: { second: { ...stdioServers.probe(), env: { OTHER_TOKEN: 'fresh-secret-2' } } } })

describe('V9: servers are managed through the admin API', () => {
  test('a pasted server is tested, reviewed, saved, called, undone; the file keeps its comments', async () => {
    const before = await text()
    const add = { add: { input: pasted() } }
    const [tested] = (await ask('config/servers/test', { body: add })).json
    expect(tested).toMatchObject({ name: 'second', ok: true, transport: 'stdio' })
    expect(tested.tools.map(({ name }: { name: string }) => name)).toContain('echo')
    expect(tested.tokens).toBeGreaterThan(0)
    const running = gateway.servers().length
    const preview = await ask('config/preview', { body: add })
    expect(preview.json).toMatchObject({ problems: [], servers: ['second'], editable: { ok: true } })
    expect(preview.text).not.toMatch(/inline-secret|fresh-secret/)
    expect(await text()).toBe(before)
    const applied = await ask('config/apply', { body: { ...add, hash: preview.json.hash } })
    expect(applied.json.reload).toMatchObject({ ok: true, changes: ['server second added'] })
    const saved = await text()
    expect(saved).toContain('// mine')
    expect(saved).not.toContain('fresh-secret')
    expect(saved).toContain('inline-secret-1')
    await using client = await connect('v1', { endpoint: gateway })
    expect(JSON.stringify(await client.callTool('second__echo', { message: 'hi' }))).toContain('hi')

    const conflict = await ask('config/apply', { body: { ...add, hash: preview.json.hash } })
    expect([conflict.status, conflict.json.error.code]).toEqual([409, 'CONFLICT'])

    for (const name of ['none', 'constructor', '__proto__']) {
      expect((await ask(`servers/${name}/definition`)).status).toBe(404)
    }
    const definition = await ask('servers/probe/definition')
    expect(definition.json).toMatchObject({
      editable: { ok: true },
      definition: { env: { API_TOKEN: expect.stringMatching(/^<secret \w+>$/) } },
    })
    const edited = { ...definition.json.definition, description: 'Edited' }
    const changes = [{ path: ['mcpServers', 'probe'], value: edited }]
    const { hash } = (await ask('config/preview', { body: { changes } })).json
    expect((await ask('config/apply', { body: { changes, hash } })).status).toBe(200)
    expect(await text()).toContain('inline-secret-1')

    const taken = { changes: [{ path: ['mcpServers', 'probe'], value: edited, isNew: true }] }
    expect((await ask('config/preview', { body: taken })).status).toBe(400)

    const { json: history } = await ask('config/history')
    expect(history).toMatchObject([
      { by: 'token', paths: ['mcpServers.probe.description'] },
      { paths: ['mcpServers.second'], undoes: null },
    ])
    expect(JSON.stringify(history)).not.toMatch(/inline-secret|fresh-secret/)
    for (const { id } of history) expect((await ask('config/undo', { body: { id } })).status).toBe(200)
    expect(await text()).toBe(before)
    expect(gateway.servers().length).toBeLessThanOrEqual(running + 1)
    const { json: audit } = await ask('audit?operation=edit_config&limit=10')
    expect(JSON.stringify(audit)).not.toMatch(/inline-secret|fresh-secret/)
    expect(audit.rows.length).toBeGreaterThan(0)
  })

  /** A server that first writes its own process id to a file, and that of a child that would outlive it. */
  const reporting = async ({ command, args, ...entry }: ServerEntry) => {
    const folder = await temporaryFolder()
    const file = join(folder.path, 'pids')
    const script = 'sleep 600 & echo "$$ $!" >> "$0"; exec "$@"'
    const server = { ...entry, command: 'sh', args: ['-c', script, file, command, ...(args as string[])] }
    const pids = async () => (await readFile(file, 'utf8').catch(() => '')).split(/\s+/).filter(Boolean).map(Number)
    return {
      changes: [{ path: ['mcpServers', 'tried'], value: server }],
      pids,
      living: async () => (await pids()).filter(alive),
      [Symbol.asyncDispose]: () => folder[Symbol.asyncDispose](),
    }
  }

  /** Answers every request with an error, and goes on. */
  const refusing = `process.stdin.on('data', (data) => {
    for (const line of String(data).trim().split('\\n')) {
      const { id } = JSON.parse(line)
      if (id !== undefined) console.log(JSON.stringify({ jsonrpc: '2.0', id, error: { code: -1, message: 'no' } }))
    }
  })`

  test('a tested server leaves no process, whether it works, exits or refuses', async () => {
    for (const [server, ok] of [
      [stdioServers.probe(), true],
      [{ command: 'sh', args: ['-c', 'exit 3'] }, false],
      [{ command: process.execPath, args: ['-e', refusing] }, false],
    ] as const) {
      await using tried = await reporting(server)
      const { json } = await ask('config/servers/test', { body: { changes: tried.changes } })
      expect(json).toMatchObject([{ name: 'tried', ok }])
      expect((await tried.pids()).length).toBeGreaterThanOrEqual(2)
      await expect.poll(tried.living).toEqual([])
    }
  })

  test('a cancelled test of a server leaves no process', async () => {
    await using tried = await reporting(stdioServers.probe({ mute: true }))
    const cancel = new AbortController()
    const testing = fetch(`${originOf(gateway)}/admin/api/config/servers/test`, {
      method: 'POST',
      headers: { authorization: `Bearer ${gateway.token}`, 'content-type': 'application/json' },
      body: JSON.stringify({ changes: tried.changes }),
      signal: cancel.signal,
    })
    const ended = expect(testing).rejects.toThrow()
    await expect.poll(async () => (await tried.living()).length).toBe(2)
    cancel.abort()
    await ended
    await expect.poll(tried.living).toEqual([])
  })

  test('a server that does not start reports its error and its output', async () => {
    const input = `node -e "console.error('cannot open the file'); process.exit(3)"`
    const { json } = await ask('config/servers/test', { body: { add: { input, name: 'broken' } } })
    expect(json).toMatchObject([{ name: 'broken', ok: false }])
    expect(json[0].stderr.join()).toContain('cannot open the file')
  })

  test('B6: a pasted server gets the values of variables and files only once they are confirmed', async () => {
    const requests: string[] = []
    const host = createServer((request, response) => {
      requests.push(JSON.stringify(request.headers))
      response.writeHead(401).end()
    })
    await new Promise<void>((listening) => host.listen(0, '127.0.0.1', listening))
    await using _ = { [Symbol.asyncDispose]: async () => void host.close() }
    await using folder = await temporaryFolder()
    const key = join(folder.path, 'key')
    await writeFile(key, 'of-a-file-3', { mode: 0o600 })
    const url = `http://127.0.0.1:${(host.address() as AddressInfo).port}/mcp`
    const headers = { A: '${HOME}', B: `\${file:${key}}`, C: '${exec:echo x}' }
    const edit = { add: { input: JSON.stringify({ mcpServers: { pasted: { url, headers } } }) } }
    const { json } = await ask('config/preview', { body: edit })
    const target = new URL(url).origin
    const references = ['${HOME}', headers.B]
    expect(json.references).toEqual(references.map((reference) => ({ key: 'mcpServers.pasted', target, reference })))
    for (const confirmed of [undefined, [], references.slice(1), ['${OTHER}']]) {
      const body = { ...edit, references: confirmed }
      for (const [path, more] of [['config/servers/test'], ['config/apply', { hash: json.hash }]] as const) {
        const refused = await ask(path, { body: { ...body, ...more } })
        expect([refused.status, refused.json.error.message]).toEqual([400, expect.stringContaining('${HOME}')])
      }
    }
    expect(requests).toEqual([])
    const [tested] = (await ask('config/servers/test', { body: { ...edit, references } })).json
    expect(tested).toMatchObject({ name: 'pasted', ok: false })
    expect(requests[0]).toContain('of-a-file-3')
    expect(requests[0]).toContain('${exec:echo x}')
  })

  test('edits that are invalid or ask for two things at once are refused', async () => {
    const before = await text()
    const bad = { changes: [{ path: ['mcpServers', 'probe', 'comand'], value: 1 }] }
    const { json } = await ask('config/preview', { body: bad })
    expect(json.problems).toMatchObject([{ key: 'mcpServers.probe.comand' }])
    expect((await ask('config/apply', { body: { ...bad, hash: json.hash } })).status).toBe(400)
    expect((await ask('config/preview', { body: { ...bad, text: '' } })).status).toBe(400)
    expect((await ask('config/undo', { body: { id: 'x' } })).status).toBe(400)
    expect(await text()).toBe(before)
  })
})
