import { chmod, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createRedactor } from '../../audit/redact/redactor.ts'
import { valueAt } from '../../config/edit/edit-text.ts'
import { ConfigEditor, type ResolvedEdit } from './config-editor.ts'
import { createEditHistory } from './edit-history.ts'
import { additionOf, importOf } from './propose-edit.ts'
import { configEdit } from './schema.ts'

const mine = `# mine
mcpServers:
  files:   # local
    command: node
    args: [server.js, --token=s3cr3tvalue]
    env: { API_TOKEN: "abc-inline", LEVEL: debug }
agents:
  coder:
    allow: ["files.*"]   # all
`

let folder: string
let path: string
let time = 1_000

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'toolway-edit-'))
  path = join(folder, 'toolway.yaml')
})
afterAll(() => rm(folder, { recursive: true, force: true }))

const state = () => createEditHistory(join(folder, 'state'))
const editor = (paths = [path], cwd = folder, history = state()) =>
  new ConfigEditor({
    source: { paths, env: { HOME: folder }, cwd },
    redactor: () => createRedactor({ secrets: [], keys: ['*token*'] }),
    history,
    key: 'k',
    now: () => time++,
  })

const apply = async (edit: ResolvedEdit) => {
  const proposal = await editor().propose(edit)
  return editor().apply(proposal, proposal.hash, 'os:me')
}
const text = () => readFile(path, 'utf8')

describe("V9: edits of the operator's own file", () => {
  test('are shown as a diff, written whole and keep comments and mode', async () => {
    await writeFile(path, mine, { mode: 0o640 })
    await chmod(path, 0o640)
    const edit = { changes: [{ path: ['agents', 'coder', 'allow'], value: ['files.*', 'git.*'] }] }
    const proposal = await editor().propose(edit)
    expect(proposal).toMatchObject({ problems: [], paths: ['agents.coder.allow'] })
    expect(proposal.diff).toContainEqual(['+', '    allow: ["files.*", git.*]   # all'])
    expect(await text()).toBe(mine)
    await apply(edit)
    expect(await text()).toBe(mine.replace('"files.*"]', '"files.*", git.*]'))
    expect((await stat(path)).mode & 0o777).toBe(0o640)
  })

  test('are shown as a diff without secrets in TOML too', async () => {
    const toml = join(folder, 'toolway.toml')
    const before = '[mcpServers.one]\ncommand = "x" # mine\nenv = { API_TOKEN = "abc-inline" }\n'
    await writeFile(toml, before)
    const edit = { changes: [{ path: ['mcpServers', 'one', 'description'], value: 'd' }] }
    const proposal = await editor([toml]).propose(edit)
    expect(proposal).toMatchObject({ problems: [], paths: ['mcpServers.one.description'] })
    expect(proposal.diff).toContainEqual(['+', 'description = "d"'])
    expect(JSON.stringify(proposal.diff)).not.toContain('abc-inline')
    await editor([toml]).apply(proposal, proposal.hash, 'os:me')
    expect(await readFile(toml, 'utf8')).toBe(`${before}description = "d"\n`)
    await rm(toml)
  })

  test('that make the configuration worse are refused and change nothing', async () => {
    await writeFile(path, mine)
    const edit = { changes: [{ path: ['agents', 'coder', 'alow'], value: ['x'] }] }
    expect((await editor().propose(edit)).problems).toMatchObject([{ key: 'agents.coder.alow' }])
    await expect(apply(edit)).rejects.toMatchObject({ code: 'INVALID_ARGUMENTS' })
    expect(await text()).toBe(mine)
  })

  test('are shown with the warnings that the reload will report, but not with those of the file before', async () => {
    const agents = 'agents: { dev: { allow: { servers: [a, b] } }, b: { allow: { servers: [missing] } } }'
    const servers = 'mcpServers: { a: { command: x }, b: { command: x } }'
    await writeFile(path, `defaults: { agent: dev }\n${agents}\n${servers}\n`)
    const warningsWithout = async (...at: string[]) => (await editor().propose({ changes: [{ path: at }] })).warnings
    expect(await warningsWithout('mcpServers', 'a')).toEqual([expect.stringContaining('there is no server a')])
    expect(await warningsWithout('agents', 'dev')).toEqual([expect.stringContaining('there is no agent dev')])
  })

  test('need a file without syntax errors, which are named with their line', async () => {
    await writeFile(path, 'mcpServers:\n  a: { command: x\nagents: {}\n')
    expect((await editor().file()).obstacle).toMatch(/toolway\.yaml, line \d, has a syntax error \(not valid YAML: /)
    await expect(editor().propose({ changes: [{ path: ['agents'] }] })).rejects.toMatchObject({
      code: 'INVALID_ARGUMENTS',
    })
    await writeFile(path, 'mcpServers: {}\n')
    expect(await editor().file()).toMatchObject({ obstacle: undefined })
  })

  test('with keys such as __proto__ and constructor change no prototype', async () => {
    await writeFile(path, mine)
    const value = JSON.parse('{"__proto__": {"polluted": true}}')
    for (const change of [
      { path: ['__proto__', 'polluted'], value: true },
      { path: ['agents', 'coder'], value },
    ]) {
      const { problems } = await editor().propose({ changes: [change] })
      expect(problems.length).toBeGreaterThan(0)
      expect(Object.hasOwn(Object.prototype, 'polluted')).toBe(false)
      expect(configEdit.safeParse({ changes: [change] }).success).toBe(change.value === value)
    }
    await expect(apply({ changes: [{ path: ['constructor'] }] })).rejects.toMatchObject({ code: 'INVALID_ARGUMENTS' })
  })

  test('with too many changes or too long a text are refused', async () => {
    await writeFile(path, mine)
    const agents = Object.fromEntries(Array.from({ length: 501 }, (_, index) => [`a${index}`, {}]))
    const edit = { changes: [{ path: ['agents'], value: agents }] }
    await expect(editor().propose(edit)).rejects.toMatchObject({ code: 'INVALID_ARGUMENTS' })
    const yaml = (length: number) => ({ changes: [{ path: ['agents'], yaml: 'x'.repeat(length) }] })
    expect(configEdit.safeParse(yaml(1024 * 1024)).success).toBe(true)
    expect(configEdit.safeParse(yaml(1024 * 1024 + 1)).success).toBe(false)
  })

  test('that cannot be recorded change nothing and say why', async () => {
    await writeFile(path, mine)
    const blocked = editor([path], folder, createEditHistory(path))
    const proposal = await blocked.propose({ changes: [{ path: ['agents'] }] })
    await expect(blocked.apply(proposal, proposal.hash, 'me')).rejects.toMatchObject({
      code: 'INVALID_ARGUMENTS',
      message: expect.stringContaining('ENOTDIR'),
    })
    expect(await text()).toBe(mine)
  })

  test('of a file that has changed since are a conflict', async () => {
    await writeFile(path, mine)
    const proposal = await editor().propose({ changes: [{ path: ['agents'] }] })
    await writeFile(path, `${mine}# more\n`)
    await expect(editor().apply(proposal, proposal.hash, 'me')).rejects.toMatchObject({ name: 'EditConflict' })
    expect(await text()).toBe(`${mine}# more\n`)
  })

  test('that change nothing have an empty diff, unless they write a secret that was lost', async () => {
    await writeFile(path, mine)
    const at = ['mcpServers', 'files']
    const value = valueAt((await editor().content()).values, at)
    expect(await editor().propose({ changes: [{ path: at, value }] })).toMatchObject({ diff: [], paths: [] })
    await apply({ changes: [{ path: [...at, 'env', 'LOST_TOKEN'], value: 'lost-secret-value' }] })
    await rm(join(folder, '.config/toolway/secrets/files.LOST_TOKEN'))
    const again = await editor().propose({
      changes: [{ path: [...at, 'env', 'LOST_TOKEN'], value: 'lost-secret-value' }],
    })
    expect(again.diff).not.toEqual([])
  })

  test('of a part that someone else has changed or removed since it was shown are a conflict; other parts may change', async () => {
    await writeFile(path, mine)
    const at = ['mcpServers', 'files']
    const { values, hashAt } = await editor().content()
    const entry = valueAt(values, at) as Record<string, unknown>
    const change = { path: at, value: { ...entry, description: 'mine' }, was: hashAt(at) }
    await apply({ changes: [{ path: ['agents', 'coder', 'expose'], value: 'meta' }] })
    expect((await editor().propose({ changes: [change] })).paths).toEqual(['mcpServers.files.description'])
    const limits = { path: ['limits'], value: { perMinute: 5 }, was: hashAt(['limits']) }
    await apply({ changes: [limits] })
    await expect(apply({ changes: [limits] })).rejects.toMatchObject({ name: 'EditConflict' })
    for (const theirs of [{ path: [...at, 'env', 'API_TOKEN'], value: '${OTHER:-x}' }, { path: at }]) {
      await apply({ changes: [theirs] })
      const before = await text()
      await expect(apply({ changes: [change] })).rejects.toMatchObject({ name: 'EditConflict' })
      expect(await text()).toBe(before)
    }
  })

  test('that would write something other than what was reviewed are a conflict', async () => {
    await writeFile(path, mine)
    const propose = (command: string, secret: string) =>
      editor().propose({
        changes: [{ path: ['mcpServers', 'b'], value: { command, env: { API_TOKEN: secret } } }],
      })
    const reviewed = await propose('node', 'first-secret-value')
    expect((await propose('node', 'first-secret-value')).hash).toBe(reviewed.hash)
    for (const other of [await propose('curl', 'first-secret-value'), await propose('node', 'other-secret-value')]) {
      await expect(editor().apply(other, reviewed.hash, 'me')).rejects.toMatchObject({ name: 'EditConflict' })
    }
    expect(await text()).toBe(mine)
    await editor().apply(reviewed, reviewed.hash, 'me')
  })

  test('are written and recorded, or neither', async () => {
    await writeFile(path, mine)
    const before = await state().list()
    const edit = { changes: [{ path: ['agents'] }] }
    const full = editor([path], folder, { ...state(), add: () => Promise.reject(new Error('disk full')) })
    const proposal = await full.propose(edit)
    await expect(full.apply(proposal, proposal.hash, 'me')).rejects.toThrow('disk full')
    expect(await text()).toBe(mine)
    const late = editor([path], folder, {
      ...state(),
      async add(record) {
        await writeFile(path, `${mine}# more\n`)
        return state().add(record)
      },
    })
    await expect(late.apply(proposal, proposal.hash, 'me')).rejects.toMatchObject({ code: 'INVALID_ARGUMENTS' })
    expect(await text()).toBe(`${mine}# more\n`)
    expect(await state().list()).toEqual(before)
  })

  test('never show secrets, and secrets that are not edited stay', async () => {
    await writeFile(path, mine)
    const { values } = await editor().content()
    const entry = valueAt(values, ['mcpServers', 'files']) as Record<string, unknown>
    expect(JSON.stringify(entry)).not.toMatch(/s3cr3tvalue|abc-inline/)
    await apply({ changes: [{ path: ['mcpServers', 'files'], value: { ...entry, command: 'bun' } }] })
    expect(await text()).toBe(mine.replace('node', 'bun'))
    const { diff } = await editor().propose({ changes: [{ path: ['mcpServers', 'files', 'description'], value: 'd' }] })
    expect(JSON.stringify(diff)).toMatch(/--token=<secret \w{8}>/)
    expect(JSON.stringify(diff)).not.toMatch(/s3cr3tvalue|abc-inline/)
    const unknown = { changes: [{ path: ['mcpServers', 'files', 'description'], value: '<secret 00000000>' }] }
    await expect(apply(unknown)).rejects.toMatchObject({ code: 'INVALID_ARGUMENTS' })
  })

  test('put new secrets into private files', async () => {
    await writeFile(path, mine)
    const proposal = await editor().propose({
      changes: [{ path: ['mcpServers', 'files', 'env', 'OTHER_TOKEN'], value: 'brand-new-secret' }],
    })
    expect(JSON.stringify(proposal.diff)).not.toContain('brand-new')
    await editor().apply(proposal, proposal.hash, 'me')
    const reference = '${file:~/.config/toolway/secrets/files.OTHER_TOKEN}'
    expect(await text()).toBe(mine.replace('LEVEL: debug', `LEVEL: debug, OTHER_TOKEN: "${reference}"`))
    const secret = join(folder, '.config/toolway/secrets/files.OTHER_TOKEN')
    expect(await readFile(secret, 'utf8')).toContain('brand-new-secret')
    expect((await stat(secret)).mode & 0o777).toBe(0o600)
  })

  test('that stop using the file of a secret say that the file stays', async () => {
    await writeFile(path, mine)
    const added = { command: 'node', env: { OTHER_TOKEN: 'sk-1234567890abcdef' } }
    const { id } = await apply({ changes: [{ path: ['mcpServers', 'extra'], value: added }] })
    const file = '~/.config/toolway/secrets/extra.OTHER_TOKEN'
    expect(await text()).toContain(file)
    const changes = [{ path: ['mcpServers', 'extra'] }]
    for (const edit of [{ undo: id }, { changes }]) {
      const { warnings } = await editor().propose(edit)
      expect(warnings.filter((warning) => warning.includes(file))).toHaveLength(1)
    }
    const other = { changes: [{ path: ['mcpServers', 'extra', 'description'], value: 'd' }] }
    expect((await editor().propose(other)).warnings.join()).not.toContain(file)
  })

  test('are recorded in files that only the owner can read, even if others can read the configuration', async () => {
    await writeFile(path, mine)
    await chmod(path, 0o644)
    const { id } = await apply({
      changes: [{ path: ['mcpServers', 'files', 'env', 'API_TOKEN'], value: '${API_TOKEN:-}' }],
    })
    expect((await stat(join(folder, 'state', 'config-history', `${id}.json`))).mode & 0o777).toBe(0o600)
  })

  test('can be undone exactly, and as a change if the file was edited elsewhere since', async () => {
    await writeFile(path, mine)
    const { id, by, paths } = await apply({ changes: [{ path: ['mcpServers', 'files'] }] })
    expect({ by, paths }).toEqual({ by: 'os:me', paths: ['mcpServers.files'] })
    const { id: undo } = await apply({ undo: id })
    expect(await text()).toBe(mine)
    expect((await editor().history())[0]).toMatchObject({ id: undo, undoes: id })
    const { id: other } = await apply({ changes: [{ path: ['agents', 'coder', 'expose'], value: 'meta' }] })
    await writeFile(path, `${await text()}# later\n`)
    await apply({ undo: other })
    expect(await text()).toBe(`${mine}# later\n`)
    await apply({ changes: [{ path: ['agents', 'coder', 'allow'], value: ['1.*'] }] })
    const [last] = await editor().history()
    await apply({ changes: [{ path: ['agents', 'coder', 'allow'], value: ['2.*'] }] })
    await expect(apply({ undo: last?.id ?? '' })).rejects.toMatchObject({ name: 'EditConflict' })
  })

  test.each(['', ' \n', '# only a comment\n'])(
    'that would leave a file without content are refused: %j',
    async (empty) => {
      await writeFile(path, empty)
      const { id } = await apply({ changes: [{ path: ['version'], value: 1 }] })
      const changed = await text()
      expect((await editor().propose({ undo: id })).problems).toMatchObject([
        { message: expect.stringContaining('this file is empty') },
      ])
      await expect(apply({ undo: id })).rejects.toMatchObject({ code: 'INVALID_ARGUMENTS' })
      expect(await text()).toBe(changed)
    },
  )

  test('are kept in a bounded history with the permissions of the file', async () => {
    await writeFile(path, mine)
    await chmod(path, 0o600)
    await apply({ changes: [{ path: ['agents'] }] })
    const state = join(folder, 'state/config-history')
    const names = (await readdir(state)).sort()
    expect((await stat(join(state, names.at(-1) ?? ''))).mode & 0o777).toBe(0o600)
    expect(names.length).toBeLessThanOrEqual(100)
  })

  test('create a new file where there is none; several files and other formats are not edited', async () => {
    const empty = await mkdtemp(join(folder, 'new-'))
    const fresh = editor([], empty)
    const proposal = await fresh.propose({
      changes: [{ path: ['mcpServers', 'a'], value: { command: 'x' } }],
    })
    expect(proposal).toMatchObject({ problems: [], file: { path: join(empty, 'toolway.yaml'), obstacle: undefined } })
    await fresh.apply(proposal, proposal.hash, 'me')
    expect(await readFile(join(empty, 'toolway.yaml'), 'utf8')).toContain(
      'mcpServers:\n  a:\n    command: x\n\nserver:',
    )
    const second = join(empty, 'second.yaml')
    await writeFile(second, 'version: 1\n')
    expect((await editor([path, second]).file()).obstacle).toContain('several files')
    const value = { command: 'x', env: { API_TOKEN: 'a-new-secret' } }
    const { warnings, diff } = await editor([path, second]).propose({
      changes: [{ path: ['mcpServers', 'b'], value }],
    })
    expect(warnings).toEqual([expect.stringContaining(join('secrets', 'b.API_TOKEN'))])
    expect(JSON.stringify(diff)).not.toContain('a-new-secret')
    const foreign = join(empty, 'opencode.json')
    await writeFile(foreign, '{"mcp": {"a": {"type": "local", "command": ["x"]}}}')
    const refused = editor([foreign])
    const edit = await refused.propose({ changes: [{ path: ['version'], value: 1 }] })
    await expect(refused.apply(edit, edit.hash, 'me')).rejects.toMatchObject({ name: 'EditConflict' })
  })
})

describe('V9: commands that read secrets', () => {
  const ran = () => readdir(folder).then((names) => names.filter((name) => name.startsWith('ran')).sort())
  const withCommand = (name: string) => ({ command: 'node', env: { KEY: `\${exec:sh -c "touch ${name}; echo x"}` } })

  test('run in a draft only if the file on disk contains them; the others are named as references', async () => {
    await writeFile(path, JSON.stringify({ mcpServers: { a: withCommand('ran-known') } }))
    const changes = [{ path: ['mcpServers', 'b'], value: withCommand('ran-new') }]
    const { loaded, problems, references } = await editor().propose({ changes })
    expect(await ran()).toEqual(['ran-known'])
    expect(problems).toEqual([])
    expect(loaded?.config.mcpServers).toMatchObject({ a: { env: { KEY: 'x' } }, b: { env: { KEY: 'unread-secret' } } })
    const reference = '${exec:sh -c "touch ran-new; echo x"}'
    expect(references).toEqual([{ key: 'mcpServers.b', target: 'node', reference }])
    const other = { path: ['mcpServers', 'a', 'description'], value: 'd' }
    const { references: later } = await editor().propose({ changes: [other] })
    expect(later).toEqual([])
  })

  test('are not validated with the placeholder for their output', async () => {
    await writeFile(path, mine)
    const server = { url: 'https://x.test', timeout: '${exec:echo 5s}' }
    expect(await editor().propose({ changes: [{ path: ['mcpServers', 'b'], value: server }] })).toMatchObject({
      problems: [],
      references: [{ key: 'mcpServers.b', target: 'https://x.test', reference: '${exec:echo 5s}' }],
    })
  })

  test('are plain text in servers that are pasted or imported', async () => {
    await writeFile(path, mine)
    const clone = await mkdtemp(join(folder, 'clone-'))
    const file = join(clone, '.mcp.json')
    const input = JSON.stringify({ mcpServers: { other: withCommand('ran-import') } })
    await writeFile(file, input)
    const source = { paths: [path], env: { HOME: folder }, cwd: clone }
    for (const added of [await additionOf({ input }, source), await importOf([{ file, name: 'other' }], source)]) {
      expect(added.changes).toMatchObject([{ value: { env: { KEY: '$${exec:sh -c "touch ran-import; echo x"}' } } }])
      expect(added.notes).toContainEqual(expect.stringContaining('other contains ${exec:'))
    }
  })
})

test('B6: an edit names the references that it adds to an entry, and those whose values would go elsewhere', async () => {
  const server = (url: string) => ({ url, headers: { A: '${ONE:-secret}' } })
  await writeFile(path, JSON.stringify({ mcpServers: { a: server('https://a.test/mcp') } }))
  const added = async (value: unknown, ...at: string[]) =>
    (await editor().propose({ changes: [{ path: ['mcpServers', ...at], value }] })).references.map(
      ({ key, target, reference }) => [key, target, reference].join(' '),
    )
  const one = '${ONE:-…}'
  expect(await added('https://a.test/other', 'a', 'url')).toEqual([])
  expect(await added('https://me:pass@b.test/mcp', 'a', 'url')).toEqual([`mcpServers.a https://b.test ${one}`])
  expect(await added(server('https://a.test/mcp'), 'b')).toEqual([`mcpServers.b https://a.test ${one}`])
  expect(
    await added({ command: 'npx', args: ['https://c.test/x'], env: { B: '${file:~/k}' }, envFile: '.env' }, 'c'),
  ).toEqual(['mcpServers.c npx https://c.test ${file:~/k}', 'mcpServers.c npx https://c.test envFile: .env'])
  const headers = { path: ['mcpServers', 'a', 'headers'], value: { A: '$${ONE}', B: '${env:TWO}' } }
  expect((await editor().propose({ changes: [headers] })).references).toMatchObject([
    { key: 'mcpServers.a', reference: '${env:TWO}' },
  ])
})

test('V9: aliases that expand a short YAML text exponentially are an invalid request', async () => {
  await writeFile(path, mine)
  const lists = [...'bcdefg'].map((name, index) => `${name}: &${name} [${Array(9).fill(`*${'abcdef'[index]}`)}]`)
  const yaml = ['a: &a [x,x,x,x,x,x,x,x,x]', ...lists, ''].join('\n')
  await expect(apply({ changes: [{ path: ['mcpServers', 'files'], yaml }] })).rejects.toMatchObject({
    code: 'INVALID_ARGUMENTS',
  })
  expect(await text()).toBe(mine)
})
