import { execFile } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { temporaryFolder } from '../../fixtures/folders.ts'
import { toolwayWords } from '../../fixtures/programs.ts'
import { startToolway } from '../../fixtures/toolway.ts'
import { until } from '../../fixtures/until.ts'

const run = promisify(execFile)
const token = 'a-token-of-the-operator'

test('B6: serve and validate refuse a gateway that others could use without a credential or guess, --host included', async () => {
  await using folder = await temporaryFolder()
  const write = (name: string, config: object) => writeFile(join(folder.path, name), JSON.stringify(config))
  await write('open.json', { server: { host: '0.0.0.0' }, auth: { token: 'none' } })
  await write('local.json', { auth: { token: 'none' } })
  await write('short.json', { auth: { token: 'sk-abc123' } })
  const env = { ...process.env, HOME: folder.path, INIT_CWD: undefined }
  const exposed = ['--host', '0.0.0.0']
  for (const [reason, ...words] of [
    ['server.allowUnauthenticated', 'validate', '--config', 'open.json'],
    ['server.allowUnauthenticated', 'serve', '--port', '0', '--config', 'open.json'],
    ['server.allowUnauthenticated', 'serve', '--port', '0', '--config', 'local.json', ...exposed],
    ['server.allowUnauthenticated', 'serve', '--port', '0', '--config', 'local.json', ...exposed, '--workers', '2'],
    ['16 characters', 'serve', '--port', '0', '--config', 'short.json', ...exposed],
    ['16 characters', 'serve', '--port', '0', '--config', 'short.json', ...exposed, '--workers', '2'],
  ] as const) {
    const ended = run(process.execPath, [...toolwayWords, ...words], { cwd: folder.path, env, timeout: 100_000 })
    const { code, stderr } = await ended.then(
      () => ({ code: 0, stderr: '' }),
      (error) => error,
    )
    expect([words, code]).toEqual([words, 2])
    expect(stderr).toContain(reason)
  }
})

test('B6: a reload does not open a gateway that listens for other machines', async () => {
  const server = { host: '0.0.0.0' }
  await using toolway = await startToolway({ mcpServers: {}, server, auth: { token } }, { watch: true })
  const { gateway, rewrite } = toolway
  const failures = () =>
    gateway.reloadStatus().history.filter(({ error }) => /allowUnauthenticated|16 characters/.test(error ?? ''))
  await rewrite({ mcpServers: {}, server, auth: { token: 'none' } })
  await until(() => failures().length === 1, { what: 'the refusal' })
  // The host in force stays until the next start, whatever the file says of it now.
  for (const [changed, weak] of [
    [{ host: '127.0.0.1' }, 'none'],
    [{ ...server, allowUnauthenticated: true }, 'none'],
    [{ host: '127.0.0.1' }, 'sk-abc123'],
  ] as const) {
    const before = failures().length
    await rewrite({ mcpServers: {}, server: changed, auth: { token: weak } })
    await until(() => failures().length > before, { what: 'the next refusal' })
  }
  expect(gateway.token).toBe(token)
  expect((await fetch(toolway.url, { method: 'POST' })).status).toBe(401)
})
