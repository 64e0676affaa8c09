import { execFileSync, spawnSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { describe, expect, test } from 'vitest'
import { temporaryFolder } from '../../tests/fixtures/folders.ts'
import { toolwayWords } from '../../tests/fixtures/programs.ts'
import { mountSmallDisk } from '../../tests/fixtures/small-disk.ts'
import { ToolwayError } from '../core/errors.ts'
import { version } from '../runtime/package-paths.ts'
import { report } from './failure.ts'
import { toolway } from './kit.fixture.ts'
import { createOutput } from './kit.ts'

describe('B11: help and version', () => {
  test('--version prints the version alone', async () => {
    expect(await toolway(['--version'])).toEqual({ code: 0, stdout: `${version}\n`, stderr: '' })
  })

  test('--help names every command, gives examples and documents the exit codes', async () => {
    const { code, stdout } = await toolway(['--help'])
    expect(code).toBe(0)
    for (const command of ['serve', 'stdio', 'servers', 'tools', 'call', 'validate', 'init']) {
      expect(stdout).toMatch(new RegExp(`^ {2}${command}\\b`, 'm'))
    }
    expect(stdout).toMatch(/Examples:\n.*toolway serve/)
    expect(stdout).toMatch(/ 0 .*\n +1 .*\n +2 .*\n +3 .*\n +4 .*\n +5 .*\n +130 /)
  })

  test('under npm the examples can be pasted', async () => {
    const { stdout } = await toolway(['--help'], { command: 'npm run -s toolway --' })
    expect(stdout).toContain('npm run -s toolway -- call native.hash')
  })

  test.each([
    ['serve'],
    ['stdio'],
    ['servers'],
    ['tools', 'list'],
    ['tools', 'show'],
    ['call'],
    ['validate'],
    ['init'],
  ])('%s %s takes --config and --json', async (...words) => {
    const { stdout } = await toolway([...words, '--help'])
    expect(stdout).toMatch(/--config <file>/)
    expect(stdout).toMatch(/--json/)
  })

  test('a missing command is a usage error and shows the help on stderr', async () => {
    const { code, stdout, stderr } = await toolway([])
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    expect(stderr).toContain('Usage: toolway')
  })
})

test('B11: a full disk is an error that names the file and the setting', async ({ skip }) => {
  const mounted = await mountSmallDisk('64k')
  if (typeof mounted === 'string') return skip(mounted)
  await using disk = mounted
  disk.fill()
  const { code, stderr } = await toolway(['keys', 'create', 'x'], { env: { HOME: disk.path } })
  expect(code).toBe(1)
  expect(stderr).toMatch(/^error: ENOSPC.*\/audit-key'\nhint: .*stores\.path/)
})

test('B11: a read-only file system is named as such, whether or not the state folder exists', async ({ skip }) => {
  const mounted = await mountSmallDisk('64k')
  if (typeof mounted === 'string') return skip(mounted)
  await using disk = mounted
  mkdirSync(join(disk.path, 'state'))
  execFileSync('mount', ['-o', 'remount,ro', disk.path])
  for (const folder of ['state', 'missing', 'missing/too']) {
    const { code, stderr } = await toolway(['keys', 'create', 'x'], {
      env: { XDG_STATE_HOME: join(disk.path, folder) },
    })
    expect(code).toBe(1)
    expect(stderr).toMatch(/^error: EROFS: read-only file system, mkdir .*\nhint: .*doctor.*stores\.path/)
  }
})

test.skipIf(process.platform !== 'linux')('B11: serve ends where the state folder cannot be created', async () => {
  await using folder = await temporaryFolder()
  const file = join(folder.path, 'toolway.json')
  writeFileSync(file, JSON.stringify({ server: { port: 0 }, stores: { path: '/proc/toolway/state' } }))
  const { status, stderr } = spawnSync(process.execPath, [...toolwayWords, 'serve', '--config', file], {
    encoding: 'utf8',
    timeout: 20_000,
    killSignal: 'SIGKILL',
  })
  expect({ status, stderr }).toEqual({
    status: 1,
    stderr: expect.stringMatching(/error: ENOENT.*mkdir '\/proc\/toolway'\nhint: .*doctor.*stores\.path/),
  })
})

test.each([
  ['that belongs to another user', 'EACCES'],
  ['on a read-only file system', 'EROFS'],
])('B11: an error caused by a file %s has a hint about the folders', (_, code) => {
  const stderr = new PassThrough()
  const output = createOutput({ stdout: new PassThrough(), stderr })
  const cause = Object.assign(new Error(code), { code, path: '/state/audit-key', syscall: 'open' })
  report(new Error('no', { cause }), output, { command: 'toolway', cwd: '/', debug: false })
  expect(String(stderr.read())).toContain('`toolway doctor` checks the state folders')
})

test.each([
  ['inputSchema', false],
  ['pins', true],
])('B11: a tool that is quarantined because of %s has a hint about pins: %s', (rule, isHinted) => {
  const stderr = new PassThrough()
  const output = createOutput({ stdout: new PassThrough(), stderr })
  report(new ToolwayError('QUARANTINED', 'x', { rule }), output, { command: 'toolway', cwd: '/', debug: false })
  expect(String(stderr.read()).includes('pins approve')).toBe(isHinted)
})

describe('B11: usage errors exit with 2 and suggest what was meant', () => {
  test.each([
    [['serv'], "error USAGE: unknown command 'serv'\nhint: Did you mean serve?\n"],
    [['keys', 'list', '--nope'], "error USAGE: unknown option '--nope'\nhint: See `toolway keys list --help`.\n"],
    [['servers', '--jsn'], "error USAGE: unknown option '--jsn'\nhint: Did you mean --json?\n"],
    [['tools', 'show'], /^error USAGE: missing required argument 'name'\nhint: .*`toolway tools show --help`/],
    [['servers', 'extra'], /too many arguments/],
    [['tools', 'list', 'extra'], /too many arguments/],
    [['tools', 'shwo'], "error USAGE: unknown command 'shwo'\nhint: Did you mean show?\n"],
    [['approvals', 'approve', 'x'], /^error USAGE: unknown command 'approve'\nhint: .*\ballow, deny\b/],
    [['help', 'serv'], /\nerror USAGE: unknown command 'serv'\nhint: Did you mean serve/],
    [['keys', 'help', 'nope'], /\nerror USAGE: unknown command 'nope'\n/],
    [['stdio', '--log', 'nope', '--json'], /^error USAGE: .*--log/],
    [['serve', '--port', '70000'], /number from 0 /],
    [['serve', '--workers', 'many'], /auto/],
    [['serve', '--max-memory', '12M'], /at least 64M/],
    [['servers', '--timeout', '10'], /Expected a duration such as 500ms, 30s, 5m or 1h/],
    [['serve', '--log', 'loud'], /Allowed choices are trace, debug/],
    [['call', 'native.hash', '--args', '{'], /--args is not valid JSON/],
    [['call', 'native.hash', '--args', '[1]'], /--args must be a JSON object/],
    [['call', 'native.hash', '--args', '@missing.json'], /There is no file missing\.json/],
    [['init', '--output', 'toolway.toml'], /must end in \.yaml/],
  ])('%j', async (words, message) => {
    const { code, stdout, stderr } = await toolway(words)
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    if (typeof message === 'string') expect(stderr).toBe(message)
    else expect(stderr).toMatch(message)
  })

  test('with --json the error is JSON on stdout', async () => {
    const { code, stdout, stderr } = await toolway(['serv', '--json'])
    expect({ code, stderr }).toEqual({ code: 2, stderr: '' })
    expect(JSON.parse(stdout)).toEqual({
      error: { code: 'USAGE', message: "unknown command 'serv'", hint: 'Did you mean serve?' },
    })
  })

  test.each([
    [['--log', 'nope', 'servers', '--json']],
    [['servers', '--log', 'nope', '--json']],
    [['help', 'nope', '--json']],
  ])('%j prints JSON although --json comes after the mistake', async (words) => {
    const { code, stdout } = await toolway(words)
    expect(code).toBe(2)
    expect(JSON.parse(stdout)).toMatchObject({ error: { code: 'USAGE', message: expect.stringContaining('nope') } })
  })

  test.each([[['--json']], [['audit', '--json']]])('%j without a command prints JSON, too', async (words) => {
    const { code, stdout } = await toolway(words)
    expect(code).toBe(2)
    expect(JSON.parse(stdout)).toMatchObject({ error: { code: 'USAGE', message: expect.stringContaining('command') } })
  })
})
