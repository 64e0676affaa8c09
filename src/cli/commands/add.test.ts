import { existsSync } from 'node:fs'
import { chmod, chown, readdir, readFile, stat, watch } from 'node:fs/promises'
import { describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { lockForEdit, readSnapshot } from '../../config/edit/file.ts'
import { toolway } from '../kit.fixture.ts'
import { user } from './clients.fixture.ts'

const mine = `# My own words.
version: 1

mcpServers:
  first:      { command: x, readOnly: true }     # aligned as I like it

server:   {port: 4400}   # not 4322
`

const token = 'ghp_0123456789abcdefghijABCDEFGHIJ012345'

async function withFile(name = 'toolway.yaml', content = mine, variables: Record<string, string> = {}) {
  const one = await user({ [`shop/${name}`]: content }, variables)
  return { ...one, text: () => readFile(one.at('shop', name), 'utf8') }
}

describe('B11: the first file', () => {
  test.each([
    ['add', 'files', '--', 'x'],
    ['init', '--yes'],
    ['import', 'other.json', '--yes'],
  ])('that %s creates keeps the keys from before', async (...words) => {
    const { run, at } = await user({ 'shop/other.json': '{"mcpServers": {"a": {"command": "x"}}}' })
    await run('keys', 'create', 'before')
    expect((await run(...words)).stderr).toContain('are still used; they are in ~/.local/state/toolway/default.')
    expect((await run('keys', 'list')).stdout).toMatch(/^before /m)
    expect(await readdir(at('home', '.local', 'state', 'toolway'))).toEqual(['default'])
  })

  test('of another folder does not get them, and the output says so', async () => {
    const { run, surroundings, at } = await user({ 'other/README': '' })
    await run('keys', 'create', 'before')
    await run('init', '--yes')
    const elsewhere = (...words: string[]) => toolway(words, { ...surroundings, cwd: at('other') })
    expect((await elsewhere('add', 'files', '--', 'x')).stderr).toContain('are not used with it')
    expect((await elsewhere('keys', 'list')).stdout).toBe('')
  })
})

describe('B11: add puts a server into the configuration', () => {
  test('a command after --, with all its arguments, and every other byte stays', async () => {
    const { run, text } = await withFile()
    const { code, stdout, stderr } = await run(
      'add',
      'files',
      '-e',
      'LEVEL=high',
      '--',
      'npx',
      '-y',
      '--json',
      'x',
      '.',
    )
    expect({ code, stdout }).toEqual({
      code: 0,
      stdout: 'Added files to toolway.yaml. A running gateway applies this automatically.\n',
    })
    expect(stderr).toBe('Try it: toolway doctor --server files\n')
    const added = '  files:\n    command: npx\n    args: [-y, --json, x, .]\n    env:\n      LEVEL: high\n'
    expect(await text()).toBe(mine.replace('like it\n', `like it\n${added}`))
  })

  test('a URL with its headers and its transport; secrets go into files of their own and are never shown', async () => {
    const { run, text, at } = await withFile()
    const words = ['--transport', 'sse', '--header', 'Authorization: Bearer s3cr3t-one', '-H', 'X-Team:red']
    const { stdout, stderr } = await run('add', 'docs', 'https://x.example/mcp?api_key=s3cr3t-two', ...words)
    for (const said of [stdout, stderr, await text()]) expect(said).not.toContain('s3cr3t')
    expect(stderr).toContain('~/.config/toolway/secrets, which only you can read')
    expect(parse(await text()).mcpServers.docs).toEqual({
      url: 'https://x.example/mcp?api_key=${file:~/.config/toolway/secrets/docs.api_key}',
      transport: 'sse',
      headers: { Authorization: 'Bearer ${file:~/.config/toolway/secrets/docs.Authorization}', 'X-Team': 'red' },
    })
    const secret = at('home', '.config', 'toolway', 'secrets', 'docs.Authorization')
    expect(await readFile(secret, 'utf8')).toBe('s3cr3t-one\n')
    expect((await stat(secret)).mode & 0o777).toBe(0o600)
    expect((await run('validate')).code).toBe(0)
  })

  test('a new toolway.yaml if there is none, and a named file', async () => {
    const { run, at } = await user()
    await run('add', 'one', '--', 'x')
    expect(await readFile(at('shop', 'toolway.yaml'), 'utf8')).toMatch(/^# Toolway: .*mcpServers:\n {2}one:\n/s)
    expect((await run('add', 'one', 'https://x/mcp', '--config', 'a.json')).stderr).toContain('--config a.json')
    expect(JSON.parse(await readFile(at('shop', 'a.json'), 'utf8'))).toEqual({
      mcpServers: { one: { url: 'https://x/mcp' } },
    })
    expect((await run('validate', '--config', 'a.json')).code).toBe(0)
  })

  test("the file that would be loaded: a client's, in its own words, or the user's, with the folder that words mean", async () => {
    const { run, text } = await withFile('.mcp.json', '{"mcpServers": {"a": {"command": "x"}}} // mine\n')
    const { stderr } = await run('add', 'b', 'https://x/mcp', '--header', `X-Key: ${token}`)
    expect(stderr).toContain('Claude Code also reads .mcp.json')
    expect(await text()).toBe(
      '{"mcpServers": {"a": {"command": "x"}, "b": { "type": "http", "url": "https://x/mcp", "headers": { "X-Key": "${file:~/.config/toolway/secrets/b.X-Key}" } }}} // mine\n',
    )
    const other = await user({ 'home/.config/toolway/toolway.toml': '# mine\n[server]\nport = 4400\n' })
    expect((await other.run('add', 'c', '--', 'node', './c.js')).stdout).toContain('to ~/.config/toolway/toolway.toml')
    expect(await readFile(other.at('home', '.config', 'toolway', 'toolway.toml'), 'utf8')).toBe(
      `# mine\n[server]\nport = 4400\n\n[mcpServers.c]\ncommand = "node"\nargs = ["./c.js"]\ncwd = "${other.at('shop')}"\n`,
    )
  })

  test('--force replaces a server of that name in place, and lists lost settings', async () => {
    const { run, text, at } = await withFile()
    const refused = await run('add', 'first', '--', 'y')
    expect(refused).toMatchObject({ code: 2, stderr: expect.stringContaining('already has a server named first') })
    expect(refused.stderr).toContain('--force')
    const { stdout, stderr } = await run('add', 'first', '--force', '-e', `A_TOKEN=${token}`, '--', 'y')
    expect(stdout).toMatch(/ - {3}first: .*\n {2}\+ {3}first:\n(?:.*\n)+Replaced first in toolway\.yaml\./)
    expect(stderr).toContain(': readOnly.')
    expect(await text()).toMatch(/^mcpServers:\n {2}first:\n {4}command: y\n {4}env:\n {6}A_TOKEN: .*\n\nserver: {3}/m)
    expect((await run('add', 'first', '--force', '-e', `A_TOKEN=${token}`, '--', 'y')).stdout).toMatch(
      /^toolway\.yaml already contains first\b.*\n$/,
    )
    const again = await run('add', 'first', '--force', '--json', '--', 'z')
    expect(JSON.parse(again.stdout)).toEqual({
      file: at('shop', 'toolway.yaml'),
      name: 'first',
      lost: [],
      left: ['~/.config/toolway/secrets/first.A_TOKEN'],
      secrets: 0,
      waiting: [],
      agents: null,
      replaced: true,
      written: true,
    })
  })

  test('--dry-run shows the difference and writes nothing, no secret either', async () => {
    const { run, text, at } = await withFile()
    const { code, stdout } = await run('add', 'b', '--dry-run', '-e', `A_TOKEN=${token}`, '--', 'y')
    expect(code).toBe(0)
    expect(stdout).toMatch(/\+ {3}b:\n/)
    expect(stdout).not.toContain(token)
    expect(await text()).toBe(mine)
    expect(existsSync(at('home', '.config'))).toBe(false)
  })

  test.skipIf(process.getuid?.() !== 0)(
    'B6: a file that others could have made is neither changed nor run',
    async () => {
      const secret = `${mine}models: { m: { baseUrl: http://localhost, apiKey: '\${exec:touch ran}' } }\n`
      const { run, text, at } = await withFile('toolway.yaml', secret, { PATH: process.env.PATH ?? '' })
      await chmod(at('shop'), 0o1777)
      await chown(at('shop', 'toolway.yaml'), 65_534, 65_534)
      for (const words of [['add', 'b', '--', 'y'], ['validate'], ['doctor']]) {
        const { stdout, stderr } = await run(...words)
        expect(stdout + stderr, words[0]).toContain('found automatically')
      }
      expect(await text()).toBe(secret)
      expect(existsSync(at('shop', 'ran'))).toBe(false)
      await chown(at('shop', 'toolway.yaml'), 0, 0)
      await run('validate')
      expect(existsSync(at('shop', 'ran'))).toBe(true)
    },
  )

  test('says which agents may use it, and allows it for others in the same edit', async () => {
    const rules = `${mine}\nagents:\n  coder: { allow: { servers: [first] } }   # mine\n  coder.junior: {}\n`
    const { run, text } = await withFile('toolway.yaml', rules)
    expect((await run('add', 'a', '--', 'x')).stderr).toMatch(/^No agent may use a: .*--allow AGENT/m)
    const { stdout, stderr } = await run('add', 'b', '--allow', 'coder', '--dry-run', '--', 'y')
    expect(stdout).toMatch(/\+ .*servers: \[\s*first,\s*b\s*\]/)
    expect(stderr).toContain('Agents that may use b: coder, coder.junior.')
    await run('add', 'b', '--allow', 'coder', '--', 'y')
    expect(parse(await text()).agents.coder.allow.servers).toEqual(['first', 'b'])
    expect(await text()).toContain('# mine')
    expect(await run('add', 'c', '--allow', 'coder.junior', '--', 'y')).toMatchObject({ code: 2 })
  })

  test('a server that needs an unset variable is disabled, so that the others run', async () => {
    const { run, text } = await withFile()
    const { stderr } = await run('add', 'b', '-e', 'LEVEL=${LEVEL_OF_B}', '--', 'y')
    expect(stderr).toMatch(/^b is disabled .*LEVEL_OF_B.*remove `disabled`/m)
    expect(parse(await text()).mcpServers.b).toMatchObject({ env: { LEVEL: '${LEVEL_OF_B}' }, disabled: true })
    expect((await run('validate')).code).toBe(0)
  })
})

describe('B11: invalid additions are errors with a hint, and change nothing', () => {
  test.each([
    ['a name with a space', ['add', 'my files', '--', 'x'], /"my files"; did you mean my-files\?/],
    ['a name of our own', ['add', 'native', '--', 'x'], /"native"\.\nhint: /],
    ['options of the server without --', ['add', 'b', 'npx', '-y', 'x'], /unknown option '-y'\nhint: .* after --\./],
    ['a misspelt option of ours', ['add', 'b', '--evn', 'A=b', '--', 'x'], /'--evn'\nhint: Did you mean --env\?/],
    ['nothing to add', ['add', 'b'], /missing required argument/],
    ['another scheme', ['add', 'b', 'ftp://x'], /b cannot be added: url: expected a URL that starts with/],
    ['two URLs', ['add', 'b', 'https://x', 'https://y'], /URL .*\nhint: .*--header/],
    ['--env for a URL', ['add', 'b', 'https://x', '-e', 'A=b'], /--env .*\nhint: .*--header/],
    ['--header for a program', ['add', 'b', '-H', 'A: b', '--', 'x'], /--header .*\nhint: .*--env/],
    ['a transport that does not fit', ['add', 'b', '-t', 'http', '--', 'x'], /--transport http needs a URL/],
    ['a URL over stdio', ['add', 'b', 'https://x', '-t', 'stdio'], /--transport stdio needs a command/],
    ['half a variable', ['add', 'b', '-e', token, '--', 'x'], /--env.*KEY=VALUE/],
    ['half a header', ['add', 'b', 'https://x', '-H', token], /--header.*"Name: value"/],
    ['a header in two lines', ['add', 'b', 'https://x', '-H', `A: ${token}\nB: c`], /without control characters/],
    ['several files', ['add', 'b', '-c', 'a.yaml', '-c', 'b.yaml', '--', 'x'], /in several files/],
    ['no folder', ['add', 'b', '-c', 'no/where.yaml', '--', 'x'], /no\/where\.yaml does not exist/],
  ])('%s', async (_, words, message) => {
    const { run, text } = await withFile()
    const { code, stdout, stderr } = await run(...words)
    expect(code).toBe(2)
    expect(stderr).toMatch(message)
    expect(stdout + stderr).not.toContain(token)
    expect(await text()).toBe(mine)
  })

  test('an invalid file, a file in the format of another program, and one that cannot be edited', async () => {
    const broken = await withFile('toolway.yaml', 'a: [')
    expect(await broken.run('add', 'b', '--', 'x')).toMatchObject({ code: 2, stderr: expect.stringMatching(/yaml:1/) })
    const codex = await withFile('codex.toml', '[mcp_servers.a]\ncommand = "x"\n')
    expect((await codex.run('remove', 'a', '--config', 'codex.toml')).stderr).toMatch(
      /codex\.toml is in the codex format.*\nhint: `toolway import codex\.toml` imports its servers/,
    )
    const braces = await withFile('toolway.yaml', '{"version": 1}\n')
    expect((await braces.run('add', 'b', '--', 'x')).stderr).toContain('toolway.yaml was not changed')
    expect(await braces.text()).toBe('{"version": 1}\n')
  })

  test('earlier problems of the configuration do not prevent an addition', async () => {
    const { run, text } = await withFile('toolway.yaml', 'mcpServers:\n  a: { command: "${NOT_SET}" }\n')
    expect((await run('add', 'b', '--', 'x')).code).toBe(0)
    expect(await text()).toContain('  b:\n    command: x\n')
  })
})

describe('B11: remove removes a server', () => {
  test('keeps every other byte and its secrets, and says so', async () => {
    const { run, text, at } = await withFile()
    await run('add', 'b', '-e', `A_TOKEN=${token}`, '--', 'y')
    const dry = await run('remove', 'b', '--dry-run')
    expect(dry.stdout).toMatch(/ - {3}b:\n/)
    expect(await text()).toContain('  b:\n')
    const { code, stdout, stderr } = await run('remove', 'b')
    expect(code).toBe(0)
    expect(stdout).toMatch(/Removed b from toolway\.yaml\. A running gateway applies this automatically\.\n$/)
    expect(stderr).toBe('Its secrets are still in ~/.config/toolway/secrets/b.A_TOKEN.\n')
    expect(await text()).toBe(mine)
    expect(JSON.parse((await run('remove', 'first', '--json')).stdout)).toEqual({
      file: at('shop', 'toolway.yaml'),
      name: 'first',
      left: [],
      written: true,
    })
    expect(parse(await text()).mcpServers).toEqual({})
    expect((await run('validate')).code).toBe(0)
  })

  test('a near miss is suggested, and a missing file is an error', async () => {
    const { run } = await withFile()
    expect((await run('remove', 'first', '-c', 'gone.yaml')).stderr).toMatch(/gone\.yaml.*\nhint: .*--config/)
    expect(await run('remove', 'frist')).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/no server frist in toolway\.yaml; did you mean "first"\?\nhint: .*: first\./),
    })
  })
})

test.each([
  ['add', ['add', 'files', '--', 'node', 'x.js']],
  ['remove', ['remove', 'first']],
  ['init', ['init', '--force', '--yes']],
])('V9: %s waits while another process edits the configuration', async (_, words) => {
  const { run, text, at } = await withFile()
  await using held = new AsyncDisposableStack()
  held.use(await lockForEdit(await readSnapshot(at('shop', 'toolway.yaml'))))
  const done = run(...words)
  for await (const { filename } of watch(at('shop'))) {
    // Each attempt to take the lock creates a temporary file.
    if (filename?.startsWith('.toolway.yaml.lock.')) break
  }
  expect(await text()).toBe(mine)
  await held.disposeAsync()
  expect((await done).code).toBe(0)
  expect(await text()).not.toBe(mine)
  expect(await readdir(at('shop'))).not.toContain('.toolway.yaml.lock')
})

test('B11: commands that edit the same file at once all succeed', async () => {
  const { run, text } = await withFile()
  const names = ['a', 'b', 'c', 'd', 'e', 'f']
  const edits = [...names.map((name) => run('add', name, '--', 'x')), run('remove', 'first')]
  for (const { code, stderr } of await Promise.all(edits)) expect([code, stderr]).toEqual([0, expect.any(String)])
  expect(Object.keys(parse(await text()).mcpServers).sort()).toEqual(names)
})
