/**
 * `npm run bench [-- --json]`: what a call through Toolway costs, beside the same call through the barest proxy there
 * can be. Everything runs on this machine, one process each; take ratios seriously and absolute numbers as a hint.
 */
import { randomUUID } from 'node:crypto'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { writeConfig } from '../tests/fixtures/config-file.ts'
import { temporaryFolder } from '../tests/fixtures/folders.ts'
import { stdioServers } from '../tests/fixtures/servers.ts'
import { type Child, startChild } from './child.ts'
import { measureList } from './list.ts'
import { type Measured, measure } from './load.ts'
import { type Report, readable, yardstick } from './report.ts'
import { openTarget } from './target.ts'

const json = process.argv.includes('--json')
const note = (line: string) => process.stderr.write(line + '\n')

await using open = new AsyncDisposableStack()
const folder = open.use(await temporaryFolder())

const configOf = async (name: string, mcpServers: Record<string, Readonly<Record<string, unknown>>>) => {
  const path = join(folder.path, name)
  await mkdir(path)
  const discovery = { refresh: '1h', listDeadline: '60s' }
  return writeConfig(path, { mcpServers, discovery, telemetry: { log: 'warn' } }, randomUUID())
}

const toolway = async (name: string, entry: Readonly<Record<string, unknown>>) => {
  const config = await configOf(name, { echo: entry })
  return open.use(await startChild('../src/cli/main.ts', ['serve', '--port', '0', '--json', '--config', config]))
}

note('starting')
const echo = open.use(await startChild('./echo-http.ts', []))
const proxy = open.use(await startChild('./bare-proxy.ts', [echo.url]))
const overHttp = await toolway('http', { url: echo.url })
const overStdio = await toolway('stdio', stdioServers.probe())

const calls: Record<string, Measured[]> = {}
for (const inFlight of [1, 16]) {
  note(`measuring with ${inFlight} in flight`)
  await using open = new AsyncDisposableStack()
  const target = async (name: string, tool: string, { url, token }: Child) =>
    open.use(await openTarget({ name, tool, url, ...(token && { token }), connections: inFlight }))
  const targets = [
    await target('no proxy, HTTP server', 'echo', echo),
    await target(yardstick, 'echo', proxy),
    await target('Toolway, HTTP server', 'echo.echo', overHttp),
    await target('Toolway, stdio server', 'echo.echo', overStdio),
  ]
  calls[inFlight] = await measure(targets, { inFlight, rounds: 3, roundMs: 1000 })
}

note('measuring tools/list')
const shelves = Array.from({ length: 20 }, (_, number) => `shelf${number}`)
const many = Object.fromEntries(shelves.map((name) => [name, stdioServers.manyTools(name, 50)]))
const list = await measureList(await configOf('list', many))

const report: Report = { node: process.version, calls, list }
process.stdout.write(json ? JSON.stringify(report) + '\n' : readable(report))
