import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { connect, type Peer } from '../../fixtures/clients.ts'
import { runServe } from '../../fixtures/command.ts'
import { temporaryFolder } from '../../fixtures/folders.ts'
import { compiled, toolwayWords } from '../../fixtures/programs.ts'
import { rawRequest } from '../../fixtures/raw-http.ts'
import { until } from '../../fixtures/until.ts'

/** A home and a folder to start from, both empty. */
async function emptyPlace(open: AsyncDisposableStack) {
  const { path } = open.use(await temporaryFolder())
  const [home, cwd] = [join(path, 'home'), join(path, 'work')]
  await Promise.all([mkdir(home), mkdir(cwd)])
  return { path, cwd, env: { PATH: process.env.PATH as string, HOME: home, ...compiled } }
}

const own = [
  'hash',
  'time',
  'list_servers',
  'get_server_tools',
  'execute_tool',
  'execute_tools',
  'find_tool',
  'list_tools',
]

// At once, because each has a home and a process of its own.
test.concurrent('S2, G4, B6: with nothing configured it serves the native and the meta-tools behind a token of its own', async () => {
  await using open = new AsyncDisposableStack()
  const place = await emptyPlace(open)
  await using toolway = await runServe(place)
  expect(new URL(toolway.url).hostname).toBe('127.0.0.1')
  await using client = await connect('v2', { endpoint: toolway })
  expect((await client.listTools()).map(({ name }) => name)).toEqual(expect.arrayContaining(own))
  const { content } = await client.callTool('hash', { data: 'abc', algorithm: 'sha256' })
  expect(JSON.stringify(content)).toContain('ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad')
  expect((await rawRequest(toolway.url, { body: '{}', headers: { 'content-type': 'application/json' } })).status).toBe(
    401,
  )
})

test.concurrent('B6: the token is the same after a restart, and nothing is written where it was started', async () => {
  await using open = new AsyncDisposableStack()
  const place = await emptyPlace(open)
  const tokens: string[] = []
  for (const _ of [1, 2]) {
    await using toolway = await runServe(place)
    tokens.push(toolway.token)
    expect(await toolway.stop()).toMatchObject({ code: 0, survivors: [] })
  }
  expect(tokens[0]).toMatch(/^\S{20,}$/)
  expect(tokens[1]).toBe(tokens[0])
  expect(await readdir(place.cwd)).toEqual([])
})

test.concurrent('B6: XDG folders are respected', async () => {
  await using open = new AsyncDisposableStack()
  const place = await emptyPlace(open)
  const state = join(place.path, 'state')
  const xdg = {
    XDG_STATE_HOME: state,
    XDG_CONFIG_HOME: join(place.path, 'config'),
    XDG_DATA_HOME: join(place.path, 'data'),
    XDG_CACHE_HOME: join(place.path, 'cache'),
  }
  const home = join(place.path, 'other-home')
  await mkdir(home)
  await using toolway = await runServe({ cwd: place.cwd, env: { ...place.env, ...xdg, HOME: home } })
  expect(toolway.token).toMatch(/^\S{20,}$/)
  expect(await readdir(home)).toEqual([])
  expect((await readdir(place.path)).some((name) => name === 'state' || name === 'data')).toBe(true)
})

test.concurrent('B11: the stdio front end works without configuration too', async () => {
  await using open = new AsyncDisposableStack()
  const place = await emptyPlace(open)
  const program = { command: process.execPath, args: [...toolwayWords, 'stdio'], env: place.env, cwd: place.cwd }
  const peer: Peer = { program }
  await using client = await connect('v1', peer)
  expect((await client.listTools()).map(({ name }) => name)).toEqual(expect.arrayContaining(own))
  const { content } = await client.callTool('native.hash', { data: 'abc', algorithm: 'md5' })
  expect(JSON.stringify(content)).toContain('900150983cd24fb0d6963f7d28e17f72')
  expect(await readdir(place.cwd)).toEqual([])
})

test.concurrent('B6: to people it prints endpoint, token and a snippet to paste, and nothing on standard output', async () => {
  await using open = new AsyncDisposableStack()
  const place = await emptyPlace(open)
  const args = [...toolwayWords, 'serve', '--port', '0']
  const child = spawn(process.execPath, args, { ...place, stdio: ['ignore', 'pipe', 'pipe'] })
  let printed = ''
  let output = ''
  child.stderr.setEncoding('utf8').on('data', (text) => {
    printed += text
  })
  child.stdout.setEncoding('utf8').on('data', (text) => {
    output += text
  })
  const exit = once(child, 'exit')
  try {
    await until(() => /claude mcp add/.test(printed) && /mcpServers/.test(printed), { what: 'the banner' })
    expect(printed).toMatch(/http:\/\/127\.0\.0\.1:\d+\/mcp/)
    expect(printed).toMatch(/Bearer tw_\S+/)
  } finally {
    child.kill('SIGTERM')
  }
  expect(await exit).toEqual([0, null])
  expect(output).toBe('')
})

test.concurrent('B11: the banner counts the tools that clients are shown', async () => {
  await using open = new AsyncDisposableStack()
  const { cwd, env } = await emptyPlace(open)
  const child = spawn(process.execPath, [...toolwayWords, 'serve', '--port', '0'], { cwd, env, stdio: 'pipe' })
  const exit = once(child, 'exit')
  open.defer(async () => {
    child.kill()
    await exit
  })
  let said = ''
  const add = (text: string) => {
    said += text
  }
  child.stdout.setEncoding('utf8').on('data', add)
  child.stderr.setEncoding('utf8').on('data', add)
  const counted = () => /, (\d+) native tools?, (\d+) meta-tools\n/.exec(said)
  await until(() => counted() !== null, { what: 'the banner' })
  const [, url = ''] = /Endpoint +(\S+)/.exec(said) ?? []
  const [, token = ''] = /Token +(\S+)/.exec(said) ?? []
  await using client = await connect('v2', { endpoint: { url, token } })
  const [, native, meta] = counted() ?? []
  expect(Number(native) + Number(meta)).toBe((await client.listTools()).length)
})
