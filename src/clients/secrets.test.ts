import { mkdtempDisposable, readFile, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { findSecrets } from '../admin/config/find-secrets.ts'
import type { ServerDefinition } from '../config/import/read-servers.ts'
import {
  fileSecretStore,
  filesIn,
  type SecretSpan,
  variableSecretStore,
  variablesIn,
  withoutSecrets,
  writeSecrets,
} from './secrets.ts'

const definition = {
  command: 'npx',
  args: ['--header', 'Authorization: Bearer hunter2hunter2', 'e'],
  env: { TOKEN: 'hunter2hunter2', PIN: 'e', SHELL: 'a $${B}' },
}
const at = (path: SecretSpan['path'], start: number, end: number, key: string): SecretSpan => ({
  path,
  start,
  end,
  key,
})
const find = () => [
  at(['env', 'TOKEN'], 0, 14, 'TOKEN'),
  at(['env', 'PIN'], 0, 1, 'PIN'),
  at(['env', 'SHELL'], 0, 7, 'SHELL'),
]

describe('B11: secrets are moved, never copied', () => {
  test('each is replaced by a reference, also where a long one is repeated', async () => {
    const kept: string[] = []
    const moved = await withoutSecrets('a', definition, find, async (secret, server, key) => {
      kept.push(secret)
      return `<${server}.${key}>`
    })
    expect(moved).toEqual({
      definition: {
        command: 'npx',
        args: ['--header', 'Authorization: Bearer <a.TOKEN>', 'e'],
        env: { TOKEN: '<a.TOKEN>', PIN: '<a.PIN>', SHELL: '<a.SHELL>' },
      },
      moved: 3,
    })
    // What is not written in our own file needs no escapes any more.
    expect(kept).toEqual(['hunter2hunter2', 'e', 'a ${B}'])
  })

  test('only whole words are replaced, and never commands, packages, user names, URL schemes and hosts', async () => {
    const name = async (_: string, server: string, key: string) => `<${server}.${key}>`
    const of = (server: ServerDefinition) => withoutSecrets('a', server, findSecrets, name)
    const lines = ['-y', '@example/server-postgres', 'postgresql://postgres:postgres@localhost:5432/shop']
    expect(await of({ command: 'npx', args: lines, env: { POSTGRES_USER: 'postgres' } })).toEqual({
      definition: {
        command: 'npx',
        args: [...lines.slice(0, 2), 'postgresql://postgres:<a.password>@localhost:5432/shop'],
        env: { POSTGRES_USER: 'postgres' },
      },
      moved: 1,
    })
    const password = 'se$rver.7'
    const kept = {
      command: password,
      cwd: `/opt/${password}`,
      args: [`@example/${password}`, `${password}s`, `${password}://${password}.example`, '--user', password],
    }
    const { definition } = await of({
      ...kept,
      args: [...kept.args, password, `x:${password}`, `https://x.example/${password}/mcp?a=${password}&b`],
      env: { DB_PASSWORD: password, DB_USER: password, LINE: `a "${password}" b` },
    })
    const reference = '<a.DB_PASSWORD>'
    expect(definition).toEqual({
      ...kept,
      args: [...kept.args, reference, `x:${reference}`, `https://x.example/${reference}/mcp?a=${reference}&b`],
      env: { DB_PASSWORD: reference, DB_USER: password, LINE: `a "${reference}" b` },
    })
  })

  test.each(['{t:S}', '[S]', '{"a":"{\\"t\\":\\"S\\"}"}', 'S|x', 'user:S@host', 'a/S/b', '`S`'])(
    'a long one is replaced wherever it is repeated: %s',
    async (text) => {
      const token = 'q8ZkV3xT1mN7bR5wY2cL9pDf'
      const server = { command: 'x', args: ['--config', text.replace('S', token)], env: { API_TOKEN: token } }
      const { definition } = await withoutSecrets('a', server, findSecrets, async (_, __, key) => `<${key}>`)
      expect(definition.args).toEqual(['--config', text.replace('S', '<API_TOKEN>')])
    },
  )

  test('two secrets with the same value get a file each', async () => {
    const { keep, files } = fileSecretStore('/nowhere', '~/secrets')
    const env = { FIRST_TOKEN: 'hunter2hunter2', SECOND_TOKEN: 'hunter2hunter2' }
    const { definition, moved } = await withoutSecrets('a', { command: 'x', env }, findSecrets, keep)
    expect(definition.env).toEqual({
      FIRST_TOKEN: '${file:~/secrets/a.FIRST_TOKEN}',
      SECOND_TOKEN: '${file:~/secrets/a.SECOND_TOKEN}',
    })
    expect([moved, files.length]).toEqual([2, 2])
  })

  test('each goes into a file that only its owner can read; one that is there already is used', async () => {
    await using place = await mkdtempDisposable(join(tmpdir(), 'toolway-secrets-'))
    const folder = join(place.path, 'secrets')
    const keeper = fileSecretStore(folder, '~/secrets')
    expect(await keeper.keep('one', 'my server', 'TOKEN')).toBe('${file:~/secrets/my-server.TOKEN}')
    expect(await keeper.keep('one', 'my server', 'TOKEN')).toBe('${file:~/secrets/my-server.TOKEN}')
    expect(await keeper.keep('two', 'my server', 'TOKEN')).toBe('${file:~/secrets/my-server.TOKEN-2}')
    await writeSecrets(keeper.files)
    expect((await stat(folder)).mode & 0o777).toBe(0o700)
    expect((await stat(join(folder, 'my-server.TOKEN'))).mode & 0o777).toBe(0o600)
    expect(await readFile(join(folder, 'my-server.TOKEN-2'), 'utf8')).toBe('two\n')
    const again = fileSecretStore(folder, '~/secrets')
    expect(await again.keep('two', 'my server', 'TOKEN')).toBe('${file:~/secrets/my-server.TOKEN-2}')
    expect(again.files).toEqual([])
  })

  test('or it is replaced by a variable with a unique name', async () => {
    const { keep } = variableSecretStore()
    expect(await keep('one', 'github', 'GITHUB_TOKEN')).toBe('${GITHUB_TOKEN}')
    expect(await keep('one', 'other', 'GITHUB_TOKEN')).toBe('${GITHUB_TOKEN}')
    expect(await keep('two', 'other', 'GITHUB_TOKEN')).toBe('${OTHER_GITHUB_TOKEN}')
    expect(await keep('three', 'other', 'GITHUB_TOKEN')).toBe('${OTHER_GITHUB_TOKEN_2}')
    expect(await keep('four', 'docs', 'Authorization')).toBe('${DOCS_AUTHORIZATION}')
    expect(await keep('five', '7up', 'KEY')).toBe('${_7UP_KEY}')
  })
})

test('B11: what a definition needs from outside', () => {
  const value = { a: ['${A} ${env:B} ${C:-c} $${D}'], b: { c: '${file:~/x}${file:/y}' } }
  expect(variablesIn(value)).toEqual(['A', 'B'])
  expect(filesIn(value)).toEqual(['~/x', '/y'])
})
