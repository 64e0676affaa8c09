import { hash } from 'node:crypto'
import { chmod, readFile, rm } from 'node:fs/promises'
import { userInfo } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { loadConfig } from '../../config/load.ts'
import { folder } from '../folder.fixture.ts'
import { toolway } from '../kit.fixture.ts'

const configured = `sha256:${'0'.repeat(64)}`
const config = {
  agents: { researcher: {}, writer: {} },
  auth: { keys: [{ id: 'ci', hash: configured, agents: ['researcher'], admin: true }] },
  stores: { path: './state' },
}
const place = () => folder({ 'toolway.json': config })
const hashOf = (key: string) => `sha256:${hash('sha256', key, 'hex')}`

test('B6, B11: create prints only the key, once, and stores its hash', async () => {
  await using at = await place()
  const { code, stdout, stderr } = await toolway(['keys', 'create', 'bot', '--agent', 'researcher'], at)
  expect(code).toBe(0)
  expect(stdout).toMatch(/^twk_bot_[\w-]{43}\n$/)
  expect(stderr).toMatch(/shown only once.*state\/keys\.json/)
  const kept = await readFile(join(at.cwd, 'state', 'keys.json'), 'utf8')
  expect(kept).toContain(hashOf(stdout.trim()))
  expect(kept).not.toContain(stdout.trim())
  const listed = await toolway(['keys', 'list', '--json'], at)
  expect(listed.stdout + listed.stderr).not.toContain('twk_')
})

test('B6, B11: create --json has everything about the key', async () => {
  await using at = await place()
  const words = ['keys', 'create', 'bot', '--agent', 'researcher', '--agent', 'writer', '--admin', '--expires', '90d']
  const { stdout } = await toolway([...words, '--json'], at)
  const made = JSON.parse(stdout)
  expect(made).toMatchObject({ id: 'bot', agents: ['researcher', 'writer'], admin: true })
  expect(Date.parse(made.expires) - Date.parse(made.created)).toBe(90 * 86_400_000)
  expect(made.key).toMatch(/^twk_bot_/)
})

test('B6, B11: list shows the source, agents and expiry of keys', async () => {
  await using at = await place()
  await toolway(['keys', 'create', 'bot', '--expires', '1d'], at)
  const { stdout } = await toolway(['keys'], at)
  const [heading, ...lines] = stdout.trim().split('\n')
  expect(heading).toMatch(/^ID +AGENTS +ADMIN +CREATED +EXPIRES +LAST USED +SOURCE$/)
  expect(lines).toEqual([
    expect.stringMatching(/^ci +researcher +yes +never +never +configuration$/),
    expect.stringMatching(/^bot +\d{4}-\d\d-\d\d +\d{4}-\d\d-\d\d +never +file$/),
  ])
  const { keys } = JSON.parse((await toolway(['keys', 'list', '--json'], at)).stdout)
  expect(keys).toMatchObject([
    { id: 'ci', agents: ['researcher'], admin: true, created: null, expires: null, source: 'configuration' },
    { id: 'bot', agents: [], admin: false, expired: false, source: 'file' },
  ])
})

test('V15: a key for endpoints is listed with them; unknown ones, and those with another agent, are warnings', async () => {
  await using at = await folder({ 'toolway.json': { ...config, endpoints: { research: { agent: 'researcher' } } } })
  const create = (...words: string[]) => toolway(['keys', 'create', ...words], at)
  const { stderr } = await create('bot', '--agent', 'writer', '--endpoint', 'research', '--endpoint', 'reserch')
  expect(stderr).toMatch(/research needs a key that may act as researcher; bot may not.*no endpoint reserch/s)
  expect((await create('other', '--agent', 'researcher', '--endpoint', 'research')).stderr).not.toContain('endpoint')
  const { stdout } = await toolway(['keys'], at)
  expect(stdout).toMatch(/^ci +researcher +all +yes /m)
  expect(stdout).toMatch(/^other +researcher +research /m)
  const { key, entry } = JSON.parse((await create('line', '--endpoint', 'research', '--hash-only', '--json')).stdout)
  expect([entry.endpoints, entry.hash]).toEqual([['research'], hashOf(key)])
  expect(await create('boss', '--admin', '--endpoint', 'research')).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('cannot be an admin key'),
  })
})

test('B6, B11: revoke removes keys of the file, but not of the configuration', async () => {
  await using at = await place()
  await toolway(['keys', 'create', 'bot'], at)
  expect((await toolway(['keys', 'revoke', 'bto'], at)).stderr).toContain('did you mean "bot"?')
  expect((await toolway(['keys', 'revoke', 'ci'], at)).stderr).toContain('auth.keys')
  expect((await toolway(['keys', 'revoke', 'bot'], at)).stdout).toContain('Revoked bot')
  expect((await toolway(['keys', 'revoke', 'bot'], at)).code).toBe(2)
  expect((await toolway(['keys'], at)).stdout).not.toContain('bot')
})

test('V9, B11: rotate prints only the new key, once, and says how long the old one is valid', async () => {
  await using at = await place()
  const made = (await toolway(['keys', 'create', 'bot', '--agent', 'writer'], at)).stdout.trim()
  const { code, stdout, stderr } = await toolway(['keys', 'rotate', 'bot'], at)
  expect(code).toBe(0)
  expect(stdout).toMatch(/^twk_bot_[\w-]{43}\n$/)
  expect(stdout.trim()).not.toBe(made)
  expect(stderr).toMatch(/valid until \d{4}/)
  const { keys } = JSON.parse((await toolway(['keys', 'list', '--json'], at)).stdout)
  const [, bot] = keys
  expect(bot).toMatchObject({ id: 'bot', agents: ['writer'], lastUsed: null, previous: { lastUsed: null } })
  expect(Date.parse(bot.previous.until) - Date.parse(bot.created)).toBe(86_400_000)
  const now = JSON.parse((await toolway(['keys', 'rotate', 'bot', '--keep-old', '0', '--json'], at)).stdout)
  expect(now).toMatchObject({ id: 'bot', previousUntil: null })
  const kept = await readFile(join(at.cwd, 'state', 'keys.json'), 'utf8')
  expect(kept).toContain(hashOf(now.key))
  expect(kept).not.toContain(hashOf(stdout.trim()))
  expect((await toolway(['keys', 'rotate', 'ci'], at)).code).toBe(2)
  expect((await toolway(['audit', 'query', '--json'], at)).stdout).toContain('rotate_key')
})

test('B6, B11: names are unique and have no special characters', async () => {
  await using at = await place()
  await toolway(['keys', 'create', 'bot'], at)
  for (const name of ['bot', 'ci', 'a b', '../x', '', '-', 'ä', 'x'.repeat(65)]) {
    expect((await toolway(['keys', 'create', '--', name], at)).code, name).toBe(2)
  }
})

test('B6, B11: --hash-only stores nothing and prints a line for the configuration', async () => {
  await using at = await place()
  const { stdout } = await toolway(['keys', 'create', 'bot', '--hash-only', '--agent', 'writer'], at)
  const [key = '', line = ''] = stdout.trim().split('\n')
  await using other = await folder({ 'toolway.yaml': `auth:\n  keys:\n    ${line}\n` })
  const loaded = await loadConfig({ cwd: other.cwd, env: other.env })
  expect(loaded.config.auth.keys).toEqual([{ id: 'bot', hash: hashOf(key), agents: ['writer'], admin: false }])
  expect((await toolway(['keys'], at)).stdout).not.toContain('bot')
  expect((await toolway(['keys', 'create', 'x', '--hash-only', '--expires', '1d'], at)).code).toBe(2)
})

test('G7, B11: an unknown agent is a warning when a key is created and listed', async () => {
  await using at = await place()
  const made = await toolway(['keys', 'create', 'bot', '--agent', 'reseacher', '--agent', '*'], at)
  expect(made.code).toBe(0)
  expect(made.stderr).toMatch(/no agent reseacher .*"researcher"\?/)
  expect(made.stderr).not.toContain('agent *')
  expect((await toolway(['keys'], at)).stderr).toContain('There is no agent reseacher')
})

test('B6, B11: an untrusted key file is an error and not overwritten', async () => {
  await using at = await place()
  await toolway(['keys', 'create', 'bot'], at)
  const file = join(at.cwd, 'state', 'keys.json')
  await chmod(file, 0o666)
  const listed = await toolway(['keys'], at)
  expect(listed).toMatchObject({ code: 1, stderr: expect.stringContaining('mode 666') })
  expect(listed.stdout).toContain('ci')
  for (const words of [
    ['create', 'other'],
    ['revoke', 'bot'],
  ]) {
    expect(await toolway(['keys', ...words], at)).toMatchObject({ code: 2, stdout: '' })
  }
  await chmod(file, 0o600)
  expect((await toolway(['keys'], at)).stdout).toContain('bot')
})

test('F11: creating and revoking a key is audited with the user of the operating system, and never with the key', async () => {
  await using at = await place()
  const made = (await toolway(['keys', 'create', 'bot', '--agent', 'writer'], at)).stdout.trim()
  await toolway(['keys', 'revoke', 'bot'], at)
  const { code } = await toolway(['keys', 'revoke', 'nobody'], at)
  expect(code).not.toBe(0)
  const { stdout } = await toolway(['audit', 'query', '--json'], at)
  expect(stdout).toContain('create_key')
  expect(stdout).toContain('revoke_key')
  expect(stdout).toContain(`os:${userInfo().username}`)
  expect(stdout).not.toContain(made.slice(8))
  expect((await toolway(['audit', 'verify'], at)).code).toBe(0)
  await rm(join(at.cwd, 'state', 'audit'), { recursive: true })
  expect((await toolway(['audit', 'verify'], at)).code).not.toBe(0)
})
