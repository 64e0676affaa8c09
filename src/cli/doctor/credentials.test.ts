import { chmod, mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { changeKeyFile, type StoredKey } from '../../stores/key-file.ts'
import { checkup, configured } from './checkup.fixture.ts'

type Place = Awaited<ReturnType<typeof configured>>

const dayMs = 86_400_000
const inDays = (days: number) => new Date(Date.now() + days * dayMs).toISOString()
const keyOf = (id: string, more: Partial<StoredKey> = {}): StoredKey => ({
  id,
  hash: `sha256:${Buffer.from(id).toString('hex').padEnd(64, '0')}`,
  agents: ['dev'],
  admin: false,
  created: inDays(-100),
  ...more,
})

const keep = async ({ cwd }: Place, name: string, text: string, mode = 0o600) => {
  await mkdir(join(cwd, 'state'), { recursive: true, mode: 0o700 })
  await writeFile(join(cwd, 'state', name), text)
  await chmod(join(cwd, 'state', name), mode)
}

test('B11: a stored token is readable only by its owner, and never shown', async () => {
  await using at = await configured()
  expect((await checkup(at)).of('credentials.token')).toMatchObject(
    [{ status: 'ok', message: /first start/ }].map(text),
  )
  const token = 'tw_0123456789abcdefghijklmn'
  await keep(at, 'token', `${token}\n`)
  const kept = await checkup(at)
  expect(kept.of('credentials.token')).toMatchObject([
    { status: 'ok', message: expect.stringContaining('state/token') },
  ])
  expect(kept.said).not.toContain(token)
})

const text = ({ message, ...rest }: { status: string; message: RegExp }) => ({
  ...rest,
  message: expect.stringMatching(message),
})

test('B11: a token that others can read, and a file without a token, are problems', async () => {
  await using at = await configured()
  await keep(at, 'token', 'tw_0123456789abcdefghijklmn', 0o644)
  const open = await checkup(at)
  expect(open).toMatchObject({ code: 5 })
  expect(open.of('credentials.token')).toMatchObject([
    {
      status: 'problem',
      message: expect.stringContaining('mode 644'),
      remedy: `chmod 600 ${join(at.cwd, 'state/token')}`,
    },
  ])
  await keep(at, 'token', 'short')
  expect((await checkup(at)).of('credentials.token')).toMatchObject([
    { status: 'problem', remedy: expect.stringMatching(/^rm /) },
  ])
})

test('B11: other stored secrets that others can read are problems', async () => {
  await using at = await configured()
  await keep(at, 'audit-key', 'x'.repeat(43), 0o640)
  expect((await checkup(at)).of('credentials.files')).toMatchObject([
    { status: 'problem', message: expect.stringMatching(/audit log.*mode 640/) },
  ])
})

test('B11: a missing token is a problem if others can connect, but not on loopback', async () => {
  await using local = await configured({ auth: { token: 'none' } })
  expect((await checkup(local)).of('credentials.token')).toMatchObject([{ status: 'ok' }])
  const server = { host: '0.0.0.0', port: 0, allowUnauthenticated: true }
  await using open = await configured({ auth: { token: 'none' }, server })
  const { code, of } = await checkup(open)
  expect(code).toBe(5)
  expect(of('credentials.token')).toMatchObject([{ status: 'problem', remedy: 'auth.token: generated' }])
  const keys = [{ id: 'ci', hash: `sha256:${'0'.repeat(64)}` }]
  await using identified = await configured({ auth: { token: 'none', keys }, server })
  expect((await checkup(identified)).of('credentials.token')).toMatchObject([{ status: 'warning' }])
})

test('B6, B11: a token that could be guessed is a warning, and is not shown', async () => {
  await using at = await configured({ auth: { token: 'sk-abc123' } })
  const { of, said } = await checkup(at)
  expect(of('credentials.token')).toMatchObject([{ status: 'warning', remedy: 'auth.token: generated' }])
  expect(said).not.toContain('sk-abc123')
})

test('B11: expired keys, keys that expire soon and keys of unknown agents are reported with a remedy', async () => {
  await using at = await configured({ agents: { dev: { allow: { servers: ['*'] } } } })
  await changeKeyFile(join(at.cwd, 'state'), () => [
    keyOf('fine', { expires: inDays(30) }),
    keyOf('old', { expires: inDays(-1), agents: ['dev'], admin: true }),
    keyOf('soon', { expires: inDays(2.5) }),
    keyOf('lost', { agents: ['devv'] }),
  ])
  expect((await checkup(at)).of('credentials.keys')).toMatchObject([
    {
      status: 'warning',
      message: `the key old expired on ${inDays(-1).slice(0, 10)}`,
      remedy: 'toolway keys revoke old && toolway keys create old --agent dev --admin --expires 90d',
    },
    { status: 'warning', message: 'the key soon expires in 2 days' },
    { status: 'warning', message: 'the key lost is for devv, an agent that does not exist; did you mean "dev"?' },
  ])
})

test('B11: a key file that is not accepted is a problem', async () => {
  await using at = await configured()
  await changeKeyFile(join(at.cwd, 'state'), () => [keyOf('one')])
  expect((await checkup(at)).of('credentials.keys')).toMatchObject([
    { status: 'ok', message: '1 API key, none expired' },
  ])
  const path = join(at.cwd, 'state', 'keys.json')
  await chmod(path, 0o644)
  expect((await checkup(at)).of('credentials.keys')).toMatchObject([{ status: 'problem', remedy: `chmod 600 ${path}` }])
})
