import { readFile } from 'node:fs/promises'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { AdminError, Stats } from '../../admin/contract.ts'
import { announcedIn, folder } from '../folder.fixture.ts'
import { toolway } from '../kit.fixture.ts'

const figures = { errors: 0, denials: 0, perSecond: 0.5, averageMs: 12, p50Ms: 8, p95Ms: 40, p99Ms: 1500 }
const answers: Readonly<Record<Stats['by'], Stats>> = {
  agent: {
    by: 'agent',
    since: Date.UTC(2027, 0, 15),
    to: Date.UTC(2027, 0, 16),
    rows: [
      { name: 'dev', calls: 250, ...figures, errors: 3 },
      { name: 'locked', calls: 2, ...figures, denials: 2, averageMs: null, p50Ms: null, p95Ms: null, p99Ms: null },
    ],
  },
  server: {
    by: 'server',
    since: Date.UTC(2027, 0, 15),
    to: Date.UTC(2027, 0, 16),
    rows: [{ name: 'files', calls: 252, ...figures }],
  },
  operation: { by: 'operation', since: Date.UTC(2027, 0, 15), to: Date.UTC(2027, 0, 16), rows: [] },
  'agent-operation': { by: 'agent-operation', since: Date.UTC(2027, 0, 15), to: Date.UTC(2027, 0, 16), rows: [] },
  tool: {
    by: 'tool',
    since: Date.UTC(2027, 0, 15),
    to: Date.UTC(2027, 0, 16),
    rows: [{ name: 'files.\x1b[31mread', calls: 252, ...figures }],
  },
}

type Respond = (request: IncomingMessage, response: ServerResponse) => void

const answering: Respond = ({ url = '' }, response) => {
  const by = new URL(url, 'http://gateway').searchParams.get('by') as Stats['by']
  response.setHeader('content-type', 'application/json').end(JSON.stringify(answers[by]))
}

/** Something that listens where the configuration of a folder says that the gateway is. */
async function gateway(respond: Respond = answering, more: object = {}) {
  const seen: IncomingMessage[] = []
  const server = createServer((request, response) => {
    seen.push(request)
    respond(request, response)
  })
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening))
  const { port } = server.address() as AddressInfo
  const config = { server: { port }, stores: { path: './state' }, ...more }
  const at = await folder({ 'toolway.json': config })
  await announcedIn(at, port)
  return {
    ...at,
    port,
    seen,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((closed) => server.close(closed))
      await at[Symbol.asyncDispose]()
    },
  }
}

test('G9: stats prints a table by agent, server and operation', async () => {
  await using at = await gateway()
  const { code, stdout, stderr } = await toolway(['stats'], at)
  expect([code, stderr]).toEqual([0, expect.stringMatching(/^Asking the gateway at http:\S+\n$/)])
  const [since, , heading, dev, locked, , , files, , nothing] = stdout.trimEnd().split('\n')
  expect(since).toBe('Since 2027-01-15T00:00:00.000Z')
  expect(heading).toMatch(/^AGENT +CALLS +PER SECOND +ERRORS +DENIALS +AVERAGE +P50 +P95 +P99$/)
  expect(dev).toMatch(/^dev +250 +0\.5 +3 \(1\.2 %\) +0 +12 ms +8 ms +40 ms +1\.5 s$/)
  expect(locked).toMatch(/^locked +2 +0\.5 +0 +2 +- +- +- +-$/)
  expect(files).toMatch(/^files +252 /)
  expect(nothing).toMatch(/by operation\b.*none/)
})

test('G9: the kept token is shown to the admin interface of the configured gateway', async () => {
  await using at = await gateway()
  await toolway(['stats', '--by', 'server'], at)
  const token = (await readFile(join(at.cwd, 'state', 'token'), 'utf8')).trim()
  expect(at.seen.map(({ url, headers }) => [url, headers.authorization])).toEqual([
    ['/admin/api/stats?by=server&from=', `Bearer ${token}`],
  ])
})

test('G9: a configured token is sent, and none if none is required', async () => {
  await using at = await gateway(answering, { auth: { token: 'a-token-of-the-operator' } })
  await toolway(['stats', '--by', 'tool'], at)
  expect(at.seen[0]?.headers.authorization).toBe('Bearer a-token-of-the-operator')
  await using open = await gateway(answering, { auth: { token: 'none' } })
  await toolway(['stats', '--by', 'tool'], open)
  expect(open.seen[0]?.headers.authorization).toBeUndefined()
})

test('G9: names of servers cannot control the terminal', async () => {
  await using at = await gateway()
  const { stdout } = await toolway(['stats', '--by', 'tool'], at)
  expect(stdout).toContain('files.read')
  expect(stdout).not.toContain('\x1b')
})

const printed = (...tables: Stats['by'][]) => ({
  stats: tables
    .map((by) => answers[by])
    .map(({ rows, ...table }) => ({
      ...table,
      rows: rows.map((row) => ({ ...row, errorRate: row.name === 'dev' ? 0.012 : 0 })),
    })),
})

test('G9: --json has all figures and error rates', async () => {
  await using at = await gateway()
  const { stdout } = await toolway(['stats', '--json'], at)
  expect(JSON.parse(stdout)).toEqual(printed('agent', 'server', 'operation', 'agent-operation'))
  const one = await toolway(['stats', '--json', '--by', 'tool'], at)
  expect(JSON.parse(one.stdout)).toEqual(printed('tool'))
})

test('G9: --output writes a file, as text or as JSON', async () => {
  await using at = await gateway()
  const { code, stdout, stderr } = await toolway(['stats', '--output', 'stats.txt'], { ...at, columns: 40 })
  expect([code, stdout]).toEqual([0, ''])
  expect(stderr).toContain('Wrote stats.txt')
  const text = await readFile(join(at.cwd, 'stats.txt'), 'utf8')
  expect(text).toMatch(/^dev +250 .* 1\.5 s$/m)
  expect(text).not.toContain('\x1b')
  await toolway(['stats', '--output', 'stats.json', '--json'], at)
  const json = JSON.parse(await readFile(join(at.cwd, 'stats.json'), 'utf8'))
  expect(json).toEqual(printed('agent', 'server', 'operation', 'agent-operation'))
  expect(await toolway(['stats', '--output', 'no/such/folder'], at)).toMatchObject({ code: 2 })
})

test('G9: --watch continues until interrupted, also while the gateway restarts', async () => {
  const interrupt = new AbortController()
  let asked = 0
  await using at = await gateway((request, response) => {
    asked++
    if (asked === 2) return response.destroy()
    if (asked === 4) interrupt.abort()
    answering(request, response)
  })
  const words = ['stats', '--watch', '--every', '1ms', '--by', 'agent']
  const { code, stdout, stderr } = await toolway(words, { ...at, interrupted: interrupt.signal })
  expect(code).toBe(0)
  expect(stdout.match(/^AGENT/gm)?.length).toBeGreaterThanOrEqual(3)
  expect(stderr).toMatch(/No gateway .* Retrying\./)
})

test('G9: without a running gateway the error says how to start one', async () => {
  const gone = await gateway()
  const { port } = gone
  await gone[Symbol.asyncDispose]()
  await using at = await folder({ 'toolway.json': { server: { port }, stores: { path: './state' } } })
  const { code, stdout, stderr } = await toolway(['stats'], at)
  expect([code, stdout]).toEqual([3, ''])
  expect(stderr).toContain(`No gateway is running at http://127.0.0.1:${port}`)
  expect(stderr).toContain('`toolway serve` starts a gateway')
  const json = await toolway(['stats', '--json'], at)
  expect(JSON.parse(json.stdout)).toMatchObject({ error: { code: 'NO_GATEWAY' } })
})

test.each<[string, Respond]>([
  ['another program', (_, response) => response.end('<h1>It works</h1>')],
  ['somebody who sends us elsewhere', (_, response) => response.writeHead(302, { location: '/x' }).end('{}')],
  ['one that fails', (_, response) => response.writeHead(500).end('null')],
])('G9: %s is not taken for a gateway', async (_, respond) => {
  await using at = await gateway(respond)
  const { code, stderr } = await toolway(['stats'], at)
  expect(code).toBe(3)
  expect(stderr).toMatch(/error NO_GATEWAY: http:.* responded, but/)
})

test('G9: a refusal of the gateway is reported with its own message', async () => {
  const refused: AdminError = { error: { code: 'AUTH_REQUIRED', message: 'Show a credential\x1b[2J of an admin.' } }
  await using at = await gateway((_, response) => response.writeHead(401).end(JSON.stringify(refused)))
  const { code, stderr } = await toolway(['stats'], at)
  expect([code, stderr]).toEqual([
    4,
    expect.stringMatching(/^error AUTH_REQUIRED: Show a credential of an admin\.\n$/m),
  ])
})

test('G9: a gateway on any free port needs --port', async () => {
  await using at = await gateway()
  await using any = await folder({ 'toolway.json': { server: { port: 0 }, stores: { path: './state' } } })
  const { code, stderr } = await toolway(['stats'], any)
  expect(code).toBe(2)
  expect(stderr).toMatch(/server\.port is 0.*\n.*--port/)
  expect(await toolway(['stats', '--port', `${at.port}`], any)).toMatchObject({ code: 0 })
})

test('G9: a file is not watched', async () => {
  await using at = await gateway()
  expect(await toolway(['stats', '--watch', '--output', 'x'], at)).toMatchObject({ code: 2 })
})
