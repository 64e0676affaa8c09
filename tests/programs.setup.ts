import { spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  existsSync,
  mkdirSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { rolldown } from 'rolldown'
import { fingerprint } from '../tooling/build/fingerprint.ts'
import { bundleProgram, external, readWhatIsUsed } from '../tooling/build/program.ts'
import { serverSources } from './fixtures/programs.ts'

const root = fileURLToPath(new URL('..', import.meta.url))
const sources = [
  'src/**/*.{ts,py,json}',
  'tests/{fixtures,conformance}/**/*.ts',
  'tests/programs.setup.ts',
  'tooling/build/program.ts',
]
const cache = join(root, 'node_modules/.cache/toolway/programs')

/** Bundles the programs that tests start (tests/fixtures/programs.ts), unless they exist for these sources. */
export default async function setup(): Promise<void> {
  const folder = join(cache, fingerprint(sources))
  if (!existsSync(folder)) await build(folder)
  const now = new Date()
  utimesSync(folder, now, now)
  removeOld(now)
  process.env.TOOLWAY_TEST_PROGRAMS = folder
  process.env.NODE_COMPILE_CACHE = join(folder, 'compiled')
}

/** Builds next to the folder and renames at the end: several runs may want it at the same time. */
async function build(folder: string): Promise<void> {
  const unfinished = `${folder}.${process.pid}`
  mkdirSync(unfinished, { recursive: true })
  // One process can run many command lines (tests/fixtures/commands/).
  await bundleProgram(join(unfinished, 'dist'), ['cli/run'])
  // Files of the package that the program reads, by their place next to dist.
  for (const file of ['package.json', 'web']) symlinkSync(join(root, file), join(unfinished, file))

  const servers = await rolldown({
    cwd: root,
    input: serverSources,
    platform: 'node',
    external,
    plugins: [readWhatIsUsed],
  })
  await servers.write({ dir: join(unfinished, 'servers/bin'), format: 'esm', entryFileNames: '[name].js' })
  await servers.close()
  // Files that programs read, by their place next to their own.
  symlinkSync(join(dirname(serverSources.everything), 'docs'), join(unfinished, 'servers/docs'))
  const suite = join(serverSources['conformance-suite'], '../..')
  symlinkSync(join(suite, 'requirements'), join(unfinished, 'servers/requirements'))

  const input = { 'code-cache': join(root, 'tests/fixtures/code-cache.ts') }
  const preload = await rolldown({ cwd: root, input, platform: 'node', external: [/^node:/] })
  await preload.write({ dir: join(unfinished, 'preload'), format: 'cjs', entryFileNames: '[name].cjs', strict: true })
  await preload.close()
  await record(unfinished)

  try {
    renameSync(unfinished, folder)
  } catch (error) {
    rmSync(unfinished, { recursive: true, force: true })
    if (!existsSync(folder)) throw error
  }
}

/** Runs a gateway that calls a tool of a server, and records the functions that it needs (tests/fixtures/code-cache.ts). */
async function record(folder: string): Promise<void> {
  const home = join(folder, 'recording')
  mkdirSync(home)
  const probe = { command: process.execPath, args: [join(folder, 'servers/bin/probe.js'), '{}'] }
  writeFileSync(join(home, 'toolway.json'), JSON.stringify({ mcpServers: { probe } }))
  const option = `--require=${join(folder, 'preload/code-cache.cjs')}`
  const words = [option, join(folder, 'dist/cli/main.js'), 'serve', '--port', '0', '--json']
  const gateway = spawn(process.execPath, words, {
    cwd: home,
    env: { ...process.env, HOME: home, TOOLWAY_TEST_RECORDING: 'yes' },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const exit = once(gateway, 'exit')
  const [line] = await Promise.race([once(createInterface(gateway.stdout), 'line'), exit])
  // Tests of a gateway that does not start say why.
  if (typeof line === 'string') await callEcho(JSON.parse(line))
  gateway.kill()
  await exit
  rmSync(home, { recursive: true })
}

async function callEcho({ url, token }: { url: string; token: string }): Promise<void> {
  const headers = new Headers({
    'content-type': 'application/json',
    accept: 'application/json, text/event-stream',
    authorization: `Bearer ${token}`,
  })
  const protocolVersion = '2025-11-25'
  const clientInfo = { name: 'test', version: '1' }
  const requests = [
    { id: 1, method: 'initialize', params: { protocolVersion, capabilities: {}, clientInfo } },
    { id: 2, method: 'tools/list' },
    { id: 3, method: 'tools/call', params: { name: 'probe__echo', arguments: {} } },
  ]
  for (const request of requests) {
    const body = JSON.stringify({ jsonrpc: '2.0', ...request })
    const response = await fetch(url, { method: 'POST', headers, body })
    await response.text()
    const session = response.headers.get('mcp-session-id')
    if (session !== null) headers.set('mcp-session-id', session)
  }
}

const dayMs = 86_400_000

function removeOld(now: Date): void {
  for (const name of readdirSync(cache)) {
    const other = join(cache, name)
    // Another run may have removed it.
    const { mtimeMs = 0 } = statSync(other, { throwIfNoEntry: false }) ?? {}
    if (now.getTime() - mtimeMs > dayMs) rmSync(other, { recursive: true, force: true })
  }
}
