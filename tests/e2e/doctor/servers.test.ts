import { randomUUID } from 'node:crypto'
import { createServer as createPlain } from 'node:http'
import { createServer } from 'node:https'
import type { AddressInfo, Server } from 'node:net'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Commands, startCommands } from '../../fixtures/commands/commands.ts'
import { writeConfig } from '../../fixtures/config-file.ts'
import { temporaryFolder } from '../../fixtures/folders.ts'
import { unusedPort } from '../../fixtures/listening.ts'
import { marked } from '../../fixtures/processes.ts'
import { json, rogueHttp, type Script } from '../../fixtures/rogue-http.ts'
import { selfSigned } from '../../fixtures/self-signed.ts'
import { behindShell, type ServerEntry, startEverything, stdioServers } from '../../fixtures/servers.ts'
import { until } from '../../fixtures/until.ts'
import { runDoctor, startDoctor, withoutCode } from './run-doctor.ts'

let commands: Commands
beforeAll(() => {
  commands = startCommands()
})
afterAll(() => commands[Symbol.asyncDispose]())

/** A folder with these servers configured, and nothing of them left in the end. */
async function patient(mcpServers: Readonly<Record<string, ServerEntry>>) {
  const folder = await temporaryFolder()
  const mark = randomUUID()
  await writeConfig(folder.path, { ...withoutCode, mcpServers }, mark)
  return { cwd: folder.path, left: () => marked(mark), [Symbol.asyncDispose]: () => folder[Symbol.asyncDispose]() }
}

test.concurrent('B11: real servers over every transport are reported as healthy, with tools, era and times', async () => {
  await using folder = await temporaryFolder()
  await using streamable = await startEverything('streamableHttp')
  await using sse = await startEverything('sse')
  await using at = await patient({
    everything: stdioServers.everything(),
    memory: stdioServers.memory(join(folder.path, 'memory.json')),
    filesystem: stdioServers.filesystem(folder.path),
    shell: behindShell(stdioServers.probe()),
    streamable: { url: streamable.url },
    events: { url: sse.url },
    fallback: { url: sse.url, transport: 'http' },
  })
  const { code, of } = await runDoctor({ ...at, commands })
  expect(code).toBe(0)
  for (const name of ['everything', 'memory', 'filesystem', 'shell']) {
    expect(of(`server.${name}`)).toMatchObject({
      status: 'ok',
      message: expect.stringMatching(
        /^\d+ tools; 20\d\d-\d\d-\d\d \((legacy|modern)\) over stdio; start .*, handshake .*, lists /,
      ),
    })
  }
  expect(of('server.streamable')).toMatchObject({
    status: 'ok',
    message: expect.stringContaining('over http; handshake'),
  })
  expect(of('server.events')).toMatchObject({ status: 'ok', message: expect.stringContaining('over sse') })
  expect(of('server.fallback')).toMatchObject({ status: 'warning', remedy: 'mcpServers.fallback.transport: sse' })
  expect(at.left()).toEqual([])
})

test.concurrent('B11: broken programs are distinguished, each with a remedy', async () => {
  const run = (program: string): ServerEntry => ({ command: process.execPath, args: ['-e', program] })
  await using at = await patient({
    absent: { command: 'no-such-command' },
    homeless: { command: process.execPath, cwd: '/no/such/folder' },
    forbidden: { command: './toolway.json' },
    crashing: run('console.error("out of luck"); process.exit(3)'),
    needy: run('console.error("Error: SOME_API_KEY environment variable is required"); process.exit(1)'),
    unpacked: run('require("no-such-package")'),
    chatty: run('console.log("Server listening on http://localhost:3000"); setInterval(() => {}, 1e6)'),
    mute: stdioServers.probe({ mute: true }),
    noisy: { command: 'sh', args: ['-c', `echo hello; exec ${process.execPath} "$0" "{}"`, probeFile()] },
    sloppy: stdioServers.probe({ malformed: true }),
    ahead: stdioServers.probe({ revision: '2031-01-01' }),
  })
  const { code, of } = await runDoctor({ ...at, commands }, '--timeout', '5s')
  expect(code).toBe(5)
  const said = (name: string) => {
    const { status, message, remedy = '', details = [] } = of(`server.${name}`) ?? {}
    return [status, message, `→ ${remedy}`, ...details].join('\n')
  }
  expect(said('absent')).toMatch(/^problem\nthe command no-such-command was not found\n→ command -v/)
  expect(said('homeless')).toMatch(/^problem\nits .*\/no\/such\/folder does not exist\n→ mkdir -p/)
  expect(said('forbidden')).toMatch(/^problem\nthe command \.\/toolway\.json is not executable\n→ chmod \+x/)
  expect(said('crashing')).toMatch(/^problem\nit ended \(exit code 3\)\n→ cd .*\nout of luck$/)
  expect(said('needy')).toMatch(/^problem\nit needs .*SOME_API_KEY\n→ mcpServers\.needy\.env\.SOME_API_KEY/)
  expect(said('unpacked')).toMatch(/^problem\nthe package no-such-package is not installed\n→ .*npm install/)
  expect(said('chatty')).toMatch(/^problem\nit writes .*standard output .*Server listening/)
  expect(said('mute')).toMatch(/^problem\nit started.* within 5 s/)
  expect(said('noisy')).toMatch(/^warning\n\d+ tools.*not messages \("hello"\)/)
  expect(said('sloppy')).toMatch(/^warning\n\d+ tools.*malformed definitions are left out/)
  expect(said('ahead')).toMatch(/^warning\n\d+ tools; 2031-01-01.*unknown protocol version/)
  expect(at.left()).toEqual([])
})

const probeFile = (): string => (stdioServers.probe().args as string[])[0] as string

test.concurrent('B11: remote servers are distinguished by how they refuse', async () => {
  const refusing = (script: Script) => rogueHttp(script)
  await using stranger = await refusing((_, response) => json(response, '{}', 401))
  await using forbidden = await refusing((_, response) => json(response, '{}', 403))
  await using moved = await refusing((_, response) =>
    response.writeHead(308, { location: 'https://new.example/mcp' }).end(),
  )
  await using page = await refusing((_, response) => response.setHeader('content-type', 'text/html').end('<h1>Hi</h1>'))
  await using nowhere = await refusing((_, response) => json(response, '{}', 404))
  await using secure = await listening(createServer(await selfSigned(), (_, response) => response.end()))
  await using plain = await listening(createPlain((_, response) => response.end()))
  await using at = await patient({
    stranger: { url: stranger.url },
    forbidden: { url: forbidden.url, auth: { type: 'bearer', token: 'a-token-that-is-refused' } },
    moved: { url: moved.url },
    page: { url: page.url },
    nowhere: { url: `${nowhere.origin}/wrong` },
    closed: { url: `http://127.0.0.1:${await unusedPort()}/mcp` },
    unknown: { url: 'http://no-such-host.invalid/mcp' },
    untrusted: { url: `https://127.0.0.1:${secure.port}/mcp` },
    clear: { url: `http://127.0.0.1:${secure.port}/mcp` },
    sealed: { url: `https://127.0.0.1:${plain.port}/mcp` },
  })
  const { code, checks } = await runDoctor({ ...at, commands }, '--timeout', '10s')
  expect(code).toBe(5)
  const messages = Object.fromEntries(checks.map(({ name, status, message }) => [name, `${status}: ${message}`]))
  expect(messages).toMatchObject({
    'server.stranger': expect.stringMatching(/^problem: .*credential \(HTTP 401\)/),
    'server.forbidden': expect.stringMatching(/^problem: .*our credential \(HTTP 403\)/),
    'server.moved': 'problem: it redirects to https://new.example (HTTP 308)',
    'server.page': expect.stringMatching(/^problem: there is no MCP server at /),
    'server.nowhere': expect.stringMatching(/^problem: there is no MCP server at .*\/wrong \(HTTP 404\)/),
    'server.closed': expect.stringMatching(/\(ECONNREFUSED\)/),
    'server.unknown': expect.stringMatching(/ENOTFOUND|EAI_AGAIN/),
    'server.untrusted': expect.stringMatching(/not trusted here \(DEPTH_ZERO_SELF_SIGNED_CERT\)/),
    'server.clear': expect.stringMatching(/may require TLS/),
    'server.sealed': expect.stringMatching(/does not speak TLS/),
  })
  expect(JSON.stringify(checks)).not.toContain('a-token-that-is-refused')
})

async function listening(server: Server) {
  await new Promise<void>((ready) => server.listen(0, '127.0.0.1', ready))
  const { port } = server.address() as AddressInfo
  return { port, [Symbol.asyncDispose]: () => new Promise<void>((closed) => server.close(() => closed())) }
}

test.concurrent('B11: an interrupted doctor exits with 130 and ends the processes that it started', async () => {
  await using at = await patient({ mute: behindShell(stdioServers.probe({ mute: true })) })
  const doctor = startDoctor(at)
  const ended = new Promise((resolve) => doctor.once('exit', resolve))
  await until(() => at.left().length >= 3, { what: 'the server to start' })
  doctor.kill('SIGINT')
  expect(await ended).toBe(130)
  await until(() => at.left().length === 0, { what: 'its processes to end' })
})
