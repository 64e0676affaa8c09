import { mkdir, symlink } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { ConfigError } from './problems.ts'
import { brief, project } from './project.fixture.ts'

const wrong = `version: 2
server:
  prot: 5
  port: 70000
  maxBody: 4MB
mcpServers:
  files:
    comand: npx
    readonly: true
  my server: { command: x }
  native: { command: x }
  both: { command: x, url: "http://x" }
  neither: {}
  odd:
    command: npx
    timeout: 60
    session: sharred
    guards:
      - { kind: pth, arguments: [a] }
      - { kind: path, arguments: [a], roots: [] }
  remote:
    url: ftp://x
    auth: { type: bearer }
  mixed: { command: x, transport: http }
  signed: { command: x, auth: { type: oauth } }
  streamed: { url: "http://x", transport: stdio }
polcy: {}
agents: [1]
native: { tools: [hsh] }
defaults: { debug: maybe, expose: all }
banana: 1
`

test('every problem is reported with its line, key, expectation, finding and near miss', async () => {
  const { problems } = await project({ 'toolway.yaml': wrong })
  expect(brief(await problems())).toEqual([
    '1:1 version: expected 1, found 2',
    '3:3 server.prot: unknown key `prot`; did you mean `port`?',
    '4:3 server.port: expected a whole number from 0 to 65535, found 70000',
    '5:3 server.maxBody: expected a size such as 64KiB or 4MiB, found "4MB"',
    '8:5 mcpServers.files.comand: unknown key `comand`; did you mean `command`?',
    '9:5 mcpServers.files.readonly: unknown key `readonly`; did you mean `readOnly`?',
    '10:3 mcpServers["my server"]: expected a name of up to 64 letters (A-Z, a-z), digits and _ . - that starts with a letter or digit, found "my server"; did you mean my-server?',
    expect.stringMatching(
      /^11:3 mcpServers.native: expected a name other than native, toolway, sink\b.* found "native"$/,
    ),
    '12:3 mcpServers.both: expected exactly one of command and url, found a section with command, url',
    '13:3 mcpServers.neither: expected exactly one of command and url, found an empty section',
    '16:5 mcpServers.odd.timeout: expected a duration such as 500ms, 30s, 5m or 1h, found 60; did you mean 60s (or 60ms)?',
    '17:5 mcpServers.odd.session: expected one of shared, caller, call, found "sharred"; did you mean shared?',
    '19:11 mcpServers.odd.guards[0].kind: expected one of path, sql, url, found "pth"; did you mean path?',
    '20:39 mcpServers.odd.guards[1].roots: expected a list with at least one item, found a list',
    '22:5 mcpServers.remote.url: expected a URL that starts with http:// or https://, found "ftp://x"',
    expect.stringMatching(/^23:5 mcpServers.remote.auth.token: expected a token .*, found nothing$/),
    expect.stringMatching(/^24:3 mcpServers.mixed: expected a url.* found a section with command, transport$/),
    expect.stringMatching(/^25:3 mcpServers.signed: expected no auth.* found a section with command, auth$/),
    expect.stringMatching(/^26:3 mcpServers.streamed: expected a command.* found a section with url, transport$/),
    '27:1 polcy: unknown key `polcy`; did you mean `policy`?',
    '28:1 agents: expected a section (key: value), found a list',
    '29:19 native.tools[0]: expected one of hash, time, fetch, generate, vision, speech, diffusion, execute_code, found "hsh"; did you mean hash?',
    '30:13 defaults.debug: expected true or false, found "maybe"',
    '30:27 defaults.expose: expected one of auto, direct, meta, both, code, found "all"',
    expect.stringMatching(/^31:1 banana: unknown key `banana`; expected one of .*mcpServers, naming/),
  ])
})

test('problems have structured fields for programs, too', async () => {
  const { problems, at } = await project({
    'toolway.json': '{"mcpServers": {"a": {"command": "x",\n "readonly": true}}}',
  })
  expect(await problems()).toEqual([
    {
      file: at('toolway.json'),
      line: 2,
      column: 2,
      key: 'mcpServers.a.readonly',
      message: 'unknown key `readonly`; did you mean `readOnly`?',
      expected: expect.stringContaining('readOnly'),
      found: 'readonly',
      suggestion: 'readOnly',
      excerpt: ' "readonly": true}}}',
    },
  ])
})

test('problems print as compilers print them', async () => {
  const { load, folder } = await project({ 'toolway.toml': '[server]\nport = 70000\n' })
  const thrown = await load().catch((error: unknown) => error)
  expect(thrown).toBeInstanceOf(ConfigError)
  expect((thrown as ConfigError).format(folder)).toBe(
    [
      'toolway.toml:2:1: server.port: expected a whole number from 0 to 65535, found 70000',
      '  2 | port = 70000',
      '    | ^',
    ].join('\n'),
  )
  expect((thrown as ConfigError).message).toContain('The configuration has a problem:')
})

test('B6: an error does not repeat what may be a secret', async () => {
  const { load } = await project({
    'toolway.yaml': `mcpServers:
  a: { url: "ftp://user:hunter2@x", headers: { Authorization: [hunter2] } }
  b: { command: x, env: { GH: { a: hunter2 } }, sesion: 1 }
  c: { url: "http://x", auth: { type: bearer, tokn: hunter2 } }
  d: { command: "\${MY-TOKEN:-hunter2}" }
auth:
  keys: [{ id: a, hash: hunter2 }, hunter2]
stores:
  key: hunter2
  redis: { url: "user:hunter2@localhost" }
stuff: ghp_hunter2abcdefghijk0123456789
`,
  })
  const thrown = (await load().catch((error: unknown) => error)) as ConfigError
  expect(thrown.problems.length).toBeGreaterThanOrEqual(10)
  expect(thrown.format()).not.toContain('hunter2')
  expect(JSON.stringify(thrown.problems)).not.toContain('hunter2')
})

test('a file that cannot be read is an error that says why', async () => {
  const { problems, at } = await project({
    'utf16.yaml': Buffer.from('\ufeffversion: 1', 'utf16le'),
    'large.yaml': Buffer.alloc(8 * 1024 * 1024 + 1, '#'),
  })
  await mkdir(at('folder.yaml'))
  await symlink('/dev/zero', at('endless.yaml'))
  const paths = ['none.yaml', 'folder.yaml', 'utf16.yaml', 'large.yaml', 'endless.yaml', 'utf16.yaml/x']
  expect(await problems({ paths })).toEqual([
    { file: at('none.yaml'), key: '', message: 'no such file' },
    { file: at('folder.yaml'), key: '', message: expect.stringContaining('folder') },
    { file: at('utf16.yaml'), key: '', message: 'this file is not UTF-8 text; save it as UTF-8' },
    { file: at('large.yaml'), key: '', message: 'this file is larger than 8 MiB' },
    { file: at('endless.yaml'), key: '', message: 'this file is larger than 8 MiB' },
    { file: at('utf16.yaml/x'), key: '', message: 'no such file' },
  ])
})

test('a file that exists but cannot be read is an error and does not count as missing', async () => {
  const { problems, at } = await project()
  await symlink(at('toolway.yaml'), at('toolway.yaml'))
  expect(await problems()).toEqual([
    { file: at('toolway.yaml'), key: '', message: 'this symbolic link points to itself' },
  ])
})

test('a byte order mark is tolerated and shifts no position', async () => {
  const { load, problems } = await project({
    'a.json': '\ufeff{"server": {"port": 1}}',
    'b.yaml': '\ufeffserver:\n  prt: 1\n',
  })
  expect((await load({ paths: ['a.json'] })).config.server.port).toBe(1)
  expect(brief(await problems({ paths: ['b.yaml'] }))).toEqual([expect.stringMatching(/^2:3 server\.prt/)])
})
