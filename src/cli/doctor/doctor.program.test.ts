import { existsSync } from 'node:fs'
import { chmod, mkdir, readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { stdioServers } from '../../../tests/fixtures/servers.ts'
import { ToolwayError } from '../../core/errors.ts'
import { folder } from '../folder.fixture.ts'
import { toolway } from '../kit.fixture.ts'
import { checkup, configured } from './checkup.fixture.ts'

const broken = { command: process.execPath, args: ['-e', 'console.error("boom"); process.exit(3)'] }
const good = stdioServers.probe()

test('B11: without a configuration there are no problems, and nothing is written', async () => {
  await using at = await folder()
  const { code, ok, checks } = await checkup(at)
  // The port that is taken by default may be in use on this machine.
  const others = checks.filter(({ name }) => name !== 'port')
  expect(others.filter(({ status }) => status !== 'ok')).toEqual([])
  expect(code).toBe(ok ? 0 : 5)
  expect(checks.map(({ name }) => name)).toEqual(
    expect.arrayContaining([
      'node',
      'configuration',
      'port',
      'credentials.token',
      'stores.folder',
      'audit.chain',
      'sandbox',
    ]),
  )
  for (const check of checks) {
    expect(check).toMatchObject({ message: expect.stringMatching(/\S/), ms: expect.any(Number) })
  }
  expect(await readdir(at.cwd)).toEqual([])
})

test('B11: the output has a line per finding, its remedy below, and a count', async () => {
  await using at = await configured({ mcpServers: { good, broken } })
  const { code, stdout, stderr } = await toolway(['doctor'], at)
  expect([code, stderr]).toEqual([5, ''])
  expect(stdout).toMatch(/^✓ node +Node /m)
  expect(stdout).toMatch(/^✓ server\.good +\d+ tools; 2025-11-25 \(legacy\) over stdio; start \d+ ms, handshake /m)
  expect(stdout).toMatch(/^✗ server\.broken +it ended \(exit code 3\)\n +│ boom\n +→ cd .* && .*node/m)
  expect(stdout).toMatch(/^1 problem, 0 warnings\. \d+ lines in /m)
})

test('B11: a terminal shows progress, which is removed at the end', async () => {
  await using at = await configured({ mcpServers: { good } })
  const { code, stderr, stdout } = await toolway(['doctor'], { ...at, columns: 60 })
  expect(code).toBe(0)
  expect(stderr).toMatch(/\r\x1b\[2KChecking .*server\.good/)
  expect(stderr.endsWith('\r\x1b[2K')).toBe(true)
  expect(stdout).toContain('No problems found.')
})

test('B11: warnings fail only with --strict', async () => {
  await using at = await configured({ agents: { one: { allow: { servers: ['nowhere'] } } } })
  const mild = await checkup(at)
  expect(mild).toMatchObject({ code: 0, ok: true })
  expect(mild.of('configuration')).toContainEqual(
    expect.objectContaining({ status: 'warning', message: expect.stringContaining('nowhere') }),
  )
  expect(await checkup(at, '--strict')).toMatchObject({ code: 5, ok: false })
})

test('B11: --server checks one server, and an unknown one is a usage error', async () => {
  await using at = await configured({ mcpServers: { good, broken } })
  const { code, checks } = await checkup(at, '--server', 'good')
  expect([code, checks.map(({ name }) => name)]).toEqual([0, ['node', 'configuration', 'server.good']])
  const unknown = await toolway(['doctor', '--server', 'goud'], at)
  expect(unknown).toMatchObject({ code: 2, stderr: expect.stringContaining('did you mean "good"?') })
})

test('B11: --timeout bounds each server', async () => {
  await using at = await configured({ mcpServers: { mute: stdioServers.probe({ mute: true }) } })
  const { of } = await checkup(at, '--timeout', '300ms')
  expect(of('server.mute')).toMatchObject([{ status: 'problem', message: expect.stringContaining('within 0.3 s') }])
})

test('B11: a disabled server and our own endpoint are not probed', async () => {
  const off = { command: 'no-such-command', disabled: true }
  const own = { url: 'http://localhost:4123/mcp' }
  await using at = await configured({ server: { port: 4123 }, mcpServers: { off, own } })
  const { of } = await checkup(at)
  expect(of('server.off')).toMatchObject([{ status: 'ok', message: expect.stringContaining('disabled') }])
  expect(of('server.own')).toMatchObject([{ status: 'warning', message: expect.stringContaining('own endpoint') }])
})

test('B11: problems of an invalid configuration are reported with their places, and its valid servers are probed', async () => {
  const written = {
    server: { prot: 1 },
    stores: { path: './state' },
    mcpServers: { good, bad: { comand: 'x' } },
  }
  await using at = await folder({ 'toolway.json': JSON.stringify(written, undefined, 2) })
  const { code, of, checks } = await checkup(at)
  expect(code).toBe(5)
  expect(of('configuration')).toMatchObject([
    {
      status: 'problem',
      message: expect.stringMatching(/^~\/toolway\.json:3:\d+: server\.prot: .*did you mean `port`/),
    },
    { status: 'problem', message: expect.stringContaining('mcpServers.bad') },
  ])
  expect(of('server.good')).toMatchObject([{ status: 'ok' }])
  expect(of('node')).toMatchObject([{ status: 'ok' }])
  expect(checks.map(({ name }) => name)).not.toContain('port')
})

test('B11: a command in a file that was found automatically does not run, even if the file is invalid', async () => {
  await using at = await folder()
  const marker = join(at.cwd, 'ran')
  const withCommand = { ...good, env: { KEY: `\${exec:touch ${marker}}` } }
  const written = { mcpServers: { good, bad: { comand: 'x' }, withCommand } }
  await writeFile(join(at.cwd, '.mcp.json'), JSON.stringify(written))
  const { of } = await checkup(at)
  expect(existsSync(marker)).toBe(false)
  expect(of('server.withCommand')).toEqual([])
  expect(of('server.good')).toMatchObject([{ status: 'ok' }])
})

test('B11: a file that is not a configuration, and a missing file', async () => {
  await using at = await folder({ 'toolway.yaml': 'a: [\n' })
  expect(await checkup(at)).toMatchObject({ code: 5, ok: false })
  const { of } = await checkup(at, '--config', 'missing.yaml')
  expect(of('configuration')).toMatchObject([{ message: expect.stringMatching(/^~\/missing\.yaml: /) }])
})

test('B11: one unset variable does not prevent the other checks', async () => {
  const needy = { command: 'x', env: { KEY: '${NOT_SET_ANYWHERE}' } }
  await using at = await configured({ mcpServers: { good, needy } })
  const { code, of } = await checkup(at)
  expect(code).toBe(5)
  expect(of('configuration')).toMatchObject([{ status: 'problem', remedy: 'export NOT_SET_ANYWHERE=…' }])
  expect(of('server.needy')).toMatchObject([{ status: 'problem', remedy: 'export NOT_SET_ANYWHERE=…' }])
  expect(of('server.good')).toMatchObject([{ status: 'ok' }])
  expect(of('port')).toMatchObject([{ status: 'ok' }])
})

test('B11: no secret of the configuration is shown, wherever it occurs', async () => {
  const secret = 'wJalrXUtnFEMI-K7MDENG-bPxRfiCYEXAMPLEKEY'
  const leaky = {
    command: process.execPath,
    args: ['-e', `console.error("cannot use ${secret}"); process.exit(1)`, '--', '--api-key', secret],
    env: { API_TOKEN: secret },
  }
  const remote = { url: `http://127.0.0.1:1/mcp?token=${secret}`, headers: { Authorization: `Bearer ${secret}` } }
  await using at = await configured({ auth: { token: secret }, mcpServers: { leaky, remote } })
  await chmod(join(at.cwd, 'toolway.json'), 0o644)
  const { said, of } = await checkup(at)
  expect(of('server.leaky')).toMatchObject([{ details: [expect.stringMatching(/^cannot use /)] }])
  expect(said).not.toContain(secret)
  const text = await toolway(['doctor', '--log', 'debug'], at)
  expect(text.stdout + text.stderr).not.toContain(secret)
  expect(of('credentials.files')).toMatchObject([{ status: 'warning', remedy: expect.stringMatching(/^chmod 600 /) }])
})

test('B11: output of a server cannot control the terminal', async () => {
  const program = 'process.stderr.write("\\x1b[31mred\\x1b[2J\\u202egnp\\n"); process.exit(1)'
  await using at = await configured({ mcpServers: { rude: { command: process.execPath, args: ['-e', program] } } })
  const { stdout } = await toolway(['doctor', '--server', 'rude'], at)
  expect(stdout).toMatch(/│ red ?gnp/)
  expect(stdout).not.toMatch(/[\x1b\u202e]\[?2?J?/)
})

test('B11: an interrupt exits with 130', async () => {
  await using at = await configured({ mcpServers: { good } })
  const interrupted = AbortSignal.abort(new ToolwayError('CANCELLED', 'Interrupted.'))
  expect(await toolway(['doctor'], { ...at, interrupted })).toMatchObject({ code: 130, stdout: '' })
})

test('B11: clients are listed, with the next one to connect', async () => {
  await using at = await configured()
  await mkdir(join(at.cwd, '.cursor'))
  await writeFile(join(at.cwd, '.cursor', 'mcp.json'), '{"mcpServers":{"toolway":{"url":"http://127.0.0.1:4322/mcp"}}}')
  await writeFile(join(at.cwd, '.claude.json'), '{"mcpServers":{}}')
  const { of } = await checkup(at)
  expect(of('clients')).toMatchObject([
    {
      status: 'ok',
      message: 'connected: Cursor; not connected: Claude Code',
      remedy: 'toolway connect claude-code',
    },
  ])
})
