import { chmod, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { folder } from '../folder.fixture.ts'
import { findingOf } from './probed-server.fixture.ts'

const ended = { message: 'it ended (exit code 1).' }
const late = { message: 'no response within 30 s', timedOut: true }

test.each([
  ['no-such-command', expect.stringMatching(/^command -v no-such-command .*mcpServers\.it\.command/)],
  ['uvx', 'curl -LsSf https://astral.sh/uv/install.sh | sh'],
  ['docker', 'install Docker: https://docs.docker.com/get-docker/'],
])('B11: a command that is not there: %s', async (command, remedy) => {
  // Nothing is found where there is nothing to look through.
  const finding = await findingOf({ command, env: { PATH: '/nowhere' } }, { failure: { code: 'ENOENT' } })
  expect(finding).toEqual({ status: 'problem', message: `the command ${command} was not found`, remedy })
})

test('B11: a script whose interpreter is missing', async () => {
  await using at = await folder({ script: '#!/nowhere/ruby\n' })
  const script = join(at.cwd, 'script')
  await chmod(script, 0o755)
  const finding = await findingOf({ command: script }, { failure: { code: 'ENOENT' } })
  expect(finding).toMatchObject({
    message: expect.stringMatching(/script .*interpreter/),
    remedy: expect.stringContaining(`head -1 ${script}`),
  })
})

test('B11: a missing folder is reported before a missing command', async () => {
  const finding = await findingOf({ command: 'node', cwd: '/no such/folder' }, { failure: { code: 'ENOENT' } })
  expect(finding).toMatchObject({
    message: expect.stringContaining('/no such/folder does not exist'),
    remedy: "mkdir -p '/no such/folder'",
  })
})

test('B11: a command that is not executable', async () => {
  await using at = await folder()
  await writeFile(join(at.cwd, 'server'), '')
  const finding = await findingOf({ command: './server', cwd: at.cwd }, { failure: { code: 'EACCES' } })
  expect(finding).toMatchObject({ remedy: `chmod +x ${join(at.cwd, 'server')}` })
  const found = await findingOf({ command: 'server', env: { PATH: at.cwd } }, { failure: { code: 'EACCES' } })
  expect(found).toMatchObject({ remedy: `chmod +x ${join(at.cwd, 'server')}` })
})

test('B11: the mode of a folder that is configured as a command is not changed', async () => {
  await using at = await folder()
  const finding = await findingOf({ command: at.cwd }, { failure: { code: 'EACCES' } })
  expect(finding).toMatchObject({
    message: expect.stringContaining('permission denied'),
    remedy: expect.stringContaining(`ls -ld ${at.cwd}`),
  })
})

test.each([
  'Error: GITHUB_TOKEN environment variable is required',
  'GITHUB_TOKEN is not set',
  'Please set the GITHUB_TOKEN environment variable',
  'Missing GITHUB_TOKEN',
  "KeyError: 'GITHUB_TOKEN'",
  'GITHUB_TOKEN must be provided',
])('B11: a missing variable is recognised: %s', async (line) => {
  const finding = await findingOf({ command: 'node' }, { stderr: ['starting', line], failure: ended })
  expect(finding).toMatchObject({
    message: expect.stringMatching(/variable GITHUB_TOKEN$/),
    remedy: 'mcpServers.it.env.GITHUB_TOKEN: ${GITHUB_TOKEN}',
  })
})

test('B11: a variable that is set here but not passed on differs from one that is not set', async () => {
  const seen = { stderr: ['GITHUB_TOKEN is required'], failure: ended }
  const { message } = await findingOf({ command: 'node' }, seen, { GITHUB_TOKEN: 'x' })
  expect(message).toContain('set here')
  const given = await findingOf({ command: 'node', env: { GITHUB_TOKEN: 'y' } }, seen)
  expect(given.message).not.toContain('needs the variable')
})

test.each([
  ['npm error code ENOTFOUND', 'npx cannot fetch @scope/server: the network is unreachable'],
  ['npm error 404 Not Found - GET https://registry.example/@scope%2fserver', 'npx cannot find @scope/server'],
])('B11: npx: %s', async (line, message) => {
  const config = { command: 'npx', args: ['-y', '@scope/server', '/data'] }
  expect(await findingOf(config, { stderr: [line], failure: ended })).toMatchObject({ message })
})

test.each([
  ['npx', ['npm error code SELF_SIGNED_CERT_IN_CHAIN'], 'NODE_EXTRA_CA_CERTS'],
  ['uvx', ['error: Failed to fetch: it', 'cause: invalid peer certificate: UnknownIssuer'], 'SSL_CERT_FILE'],
])('B11: %s rejects an untrusted certificate', async (command, stderr, variable) => {
  expect(await findingOf({ command, args: ['some-server'] }, { stderr, failure: ended })).toMatchObject({
    message: expect.stringContaining('is not trusted here'),
    remedy: `export ${variable}=/path/to/ca.pem`,
  })
})

test.each([
  ['npx', ['-y', '@scope/server'], 'npm exec --yes --package=@scope/server -- true'],
  ['/usr/bin/uvx', ['mcp-server-git'], 'uv tool install mcp-server-git'],
  ['docker', ['run', '-i', '--rm', '-e', 'TOKEN', 'ghcr.io/some/server'], 'docker pull ghcr.io/some/server'],
])('B11: %s may only be slow to fetch what it runs', async (command, args, remedy) => {
  const finding = await findingOf({ command, args }, { failure: late })
  expect(finding).toMatchObject({ message: expect.stringContaining('may still be downloading'), remedy })
})

test('B11: a silent program is reported with the command to run it by hand', async () => {
  const finding = await findingOf({ command: 'my-server', args: ['--name', 'a b'], cwd: '/srv' }, { failure: late })
  expect(finding).toMatchObject({
    message: expect.stringMatching(/^it started.* within 30 s \(--timeout\)$/),
    remedy: "cd /srv && my-server --name 'a b'",
  })
})

test.each([
  ["Error: Cannot find module 'express'", 'the package express is not installed', 'cd /srv && npm install express'],
  [
    "Error: Cannot find module '/srv/dist/index.js'",
    'the file /srv/dist/index.js does not exist',
    'ls -l /srv/dist/index.js',
  ],
  [
    "Error: Cannot find module '/srv/node_modules/a/b.js'",
    'the file /srv/node_modules/a/b.js of an installed package does not exist',
    'cd /srv && x',
  ],
  ["ModuleNotFoundError: No module named 'mcp'", 'the Python module mcp is not installed', 'pip install mcp'],
  [
    "ModuleNotFoundError: No module named 'mcp.server.old'",
    'the Python module mcp.server.old does not exist in the installed version',
    'cd /srv && x',
  ],
])('B11: %s', async (line, message, remedy) => {
  const finding = await findingOf({ command: 'x', cwd: '/srv' }, { stderr: [line], failure: ended })
  expect(finding).toMatchObject({ message, remedy: expect.stringContaining(remedy) })
})

test('B11: a container without -i gets no input', async () => {
  const finding = await findingOf({ command: 'docker', args: ['run', '--rm', 'some/server'] }, { failure: ended })
  expect(finding.message).toContain('docker run without -i')
  const right = await findingOf({ command: 'docker', args: ['run', '-it', 'some/server'] }, { failure: ended })
  expect(right.message).toBe('it ended (exit code 1)')
})

test('B11: a program that writes other lines to standard output is not a stdio server', async () => {
  const finding = await findingOf({ command: 'echo', args: ['hello'] }, { stdout: ['hello'], failure: ended })
  expect(finding.message).toMatch(/standard output .*"hello"/)
})

test('B11: any other failure is reported with its own message', async () => {
  const message = 'it ended (SIGSEGV). It last wrote: "core dumped". Run its command manually to see the cause.'
  expect(await findingOf({ command: 'x' }, { failure: { message } })).toMatchObject({ message: 'it ended (SIGSEGV)' })
})
