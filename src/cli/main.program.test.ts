import { type StdioOptions, spawn } from 'node:child_process'
import { once } from 'node:events'
import { open } from 'node:fs/promises'
import { type AddressInfo, createServer } from 'node:net'
import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { startHttpServer } from '../../tests/fixtures/http-server.ts'
import { compiled, toolwayMain } from '../../tests/fixtures/programs.ts'
import { logFolder } from '../audit/search/log.fixture.ts'
import { twoServers } from './everything.fixture.ts'
import { folder } from './folder.fixture.ts'

/** As `npm start` runs it. */
const source = fileURLToPath(new URL('main.ts', import.meta.url))

const start = (words: readonly string[], { cwd, env }: { cwd: string; env: NodeJS.ProcessEnv }, main = toolwayMain) =>
  spawn(process.execPath, [main, ...words], { cwd, env: { ...env, ...compiled }, stdio: 'pipe' })

const initialize = {
  jsonrpc: '2.0',
  id: 1,
  method: 'initialize',
  params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'test', version: '1' } },
}

test.each([source, toolwayMain])(
  'B11: stdio writes only responses to stdout, and ends with its input',
  async (main) => {
    await using place = await folder()
    const child = start(['stdio'], place, main)
    child.stdin.end(JSON.stringify(initialize) + '\n')
    const [stdout, [code]] = await Promise.all([text(child.stdout), once(child, 'exit')])
    expect(code).toBe(0)
    expect(
      stdout
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line)),
    ).toMatchObject([{ id: 1, result: { serverInfo: { name: 'toolway' } } }])
  },
)

test('E1: a call of a known tool whose server is gone fails with SERVER_UNAVAILABLE, however long that takes', async () => {
  await using server = await startHttpServer()
  await using place = await folder({ 'toolway.json': { mcpServers: { gone: { url: server.url } } } })
  const called = async () => {
    const child = start(['call', 'gone__echo', 'message=hi'], place)
    const [said, [code]] = await Promise.all([text(child.stderr), once(child, 'exit')])
    return { said, code }
  }
  expect(await called()).toMatchObject({ code: 0 })
  await server[Symbol.asyncDispose]()
  expect(await called()).toMatchObject({ code: 3, said: expect.stringContaining('ECONNREFUSED') })
})

test('B11: serve --json says where it listens, asks for its token, and ends with 0 on SIGTERM', async () => {
  await using place = await folder({ 'toolway.json': twoServers })
  const child = start(['serve', '--port', '0', '--json', '--log', 'error'], place)
  const [line] = await once(createInterface(child.stdout), 'line')
  const { event, url, port, token } = JSON.parse(line)
  expect({ event, url }).toEqual({ event: 'listening', url: `http://127.0.0.1:${port}/mcp` })
  const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }
  const body = JSON.stringify(initialize)
  expect((await fetch(url, { method: 'POST', headers, body })).status).toBe(401)
  const known = { ...headers, authorization: `Bearer ${token}` }
  expect((await fetch(url, { method: 'POST', headers: known, body })).status).toBe(200)
  child.kill('SIGTERM')
  expect((await once(child, 'exit'))[0]).toBe(0)
})

test.skipIf(process.platform === 'win32')('B10: SIGUSR2 does not end a gateway without workers', async () => {
  await using place = await folder()
  const child = start(['serve', '--port', '0', '--json', '--log', 'error'], place)
  const stderr = text(child.stderr)
  const [line] = await once(createInterface(child.stdout), 'line')
  child.kill('SIGUSR2')
  expect((await fetch(`http://127.0.0.1:${JSON.parse(line).port}/livez`)).status).toBe(200)
  child.kill('SIGTERM')
  expect(await once(child, 'exit')).toEqual([0, null])
  expect(await stderr).toContain('SIGUSR2')
})

test('B11: serve prints its banner on stderr, with a token that the next start keeps', async () => {
  await using place = await folder()
  const banners: string[] = []
  for (const _ of [1, 2]) {
    const child = start(['serve', '--port', '0', '--log', 'error'], place)
    let shown = ''
    for await (const chunk of child.stderr) {
      shown += chunk
      if (shown.includes('Ctrl+C')) break
    }
    banners.push(shown)
    child.kill('SIGINT')
    expect((await once(child, 'exit'))[0]).toBe(0)
  }
  const [first, second] = banners.map((shown) => /Token +(\S+)/.exec(shown)?.[1])
  expect(first).toMatch(/^tw_/)
  expect(second).toBe(first)
})

test('B10: if the port is in use, no worker is restarted', async () => {
  await using place = await folder()
  await using taken = createServer().listen(0, '127.0.0.1')
  await once(taken, 'listening')
  const { port } = taken.address() as AddressInfo
  const child = start(['serve', '--workers', '2', '--port', String(port)], place)
  const [stderr, [code]] = await Promise.all([text(child.stderr), once(child, 'exit')])
  expect(code).toBe(1)
  expect(stderr).toContain('in use')
  expect(stderr).not.toContain('worker exited')
})

test('B11: a closed output is not a failure', async () => {
  await using place = await folder()
  await using log = await logFolder()
  // Larger than the buffer of a pipe, so that the command waits for its reader.
  const rule = 'r'.repeat(1000)
  log.atOnce(() => Array.from({ length: 500 }, (_, index) => log.write({ call: String(index), rule })))
  for (const words of [
    ['tools', '--json'],
    ['audit', 'export', '--path', log.folder],
  ]) {
    const child = start(words, place)
    child.stdout.destroy()
    const [stderr, [code]] = await Promise.all([text(child.stderr), once(child, 'exit')])
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  }
})

test.skipIf(process.platform !== 'linux')(
  'B11: an output that cannot be written is one line and exit code 1',
  async () => {
    await using place = await folder()
    await using full = await open('/dev/full', 'w')
    const env = { ...place.env, ...compiled }
    const stdio: StdioOptions = ['ignore', full.fd, 'pipe']
    const child = spawn(process.execPath, [toolwayMain, 'tools', '--json'], { cwd: place.cwd, env, stdio })
    const [stderr, [code]] = await Promise.all([text(child.stderr as Readable), once(child, 'exit')])
    expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringMatching(/^error: .*stdout.*ENOSPC.*\n$/) })
  },
)

test.skipIf(process.platform !== 'linux').each([
  ['keys create bot --json', 'keys revoke bot'],
  ['keys rotate known', 'keys rotate known'],
])('B6: %s says what to do if the key cannot be shown', async (words, remedy) => {
  await using place = await folder()
  const script = `"$0" "$1" keys create known >/dev/null 2>&1 && exec "$0" "$1" ${words} >/dev/full`
  const env = { ...place.env, ...compiled }
  const child = spawn('sh', ['-c', script, process.execPath, toolwayMain], { cwd: place.cwd, env, stdio: 'pipe' })
  const [stderr, [code]] = await Promise.all([text(child.stderr), once(child, 'exit')])
  expect(code).toBe(1)
  expect(stderr).toContain(` ${remedy}\n`)
})

test.skipIf(process.platform === 'win32').each([
  ['validate --json', 2, /^\{"error":\{"code":"USAGE","message":"[^"]*folder no longer exists/, /^$/],
  ['stdio', 2, /^$/, /^error USAGE: .*folder no longer exists.*\nhint: .*\n$/],
  ['--version', 0, /^\d/, /^$/],
])('B11: in a folder that was removed, %s ends at once with %i', async (words, code, stdout, stderr) => {
  await using place = await folder()
  const script = `mkdir gone && cd gone && rmdir ../gone && exec "$0" "$1" ${words}`
  const env = { ...place.env, ...compiled }
  const child = spawn('sh', ['-c', script, process.execPath, toolwayMain], { cwd: place.cwd, env, stdio: 'pipe' })
  const [shown, said, [ended]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'exit')])
  expect(ended).toBe(code)
  expect(shown).toMatch(stdout)
  expect(said).toMatch(stderr)
})

test.skipIf(process.platform === 'win32').each([
  ['/dev/stdin', 'cat config | "$0" "$1" validate --config /dev/stdin'],
  ['/dev/fd/3', 'cat config | "$0" "$1" validate --config /dev/fd/3 3<&0 </dev/null'],
])('B11: a configuration is read from a pipe of the shell: %s', async (_, script) => {
  await using place = await folder({ config: { server: { port: 4711 } } })
  const env = { ...place.env, ...compiled }
  const child = spawn('sh', ['-c', script, process.execPath, toolwayMain], { cwd: place.cwd, env, stdio: 'pipe' })
  const [stderr, [code]] = await Promise.all([text(child.stderr), once(child, 'exit')])
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
})
