import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { expect, test } from 'vitest'
import { until } from '../../../tests/fixtures/until.ts'
import { startIssuer } from '../../upstream/oauth/issuer.fixture.ts'
import { startResource } from '../../upstream/oauth/resource.fixture.ts'
import { folder } from '../folder.fixture.ts'
import { recordedShell, toolway } from '../kit.fixture.ts'
import { run } from '../run.ts'

const place = (url: string, auth = {}) =>
  folder({
    'toolway.json': {
      mcpServers: { files: { url, auth: { type: 'oauth', ...auth } }, plain: { command: 'x' } },
      stores: { path: './state' },
    },
  })

/** Runs the command, and goes where it says. */
async function signedIn(words: readonly string[], cwd: string) {
  const { shell, stdout, stderr } = recordedShell({ cwd, stdin: new PassThrough() })
  const finished = run(words, shell)
  const said = () => stdout() + stderr()
  const url = await until(() => /https?:\/\/\S+\/authorize\?[^\s"]+/.exec(said())?.[0], { what: 'the address' })
  const page = await (await fetch(url)).text()
  return { code: await finished, stdout: stdout(), stderr: stderr(), page }
}

test('B6, B11: auth prints where to sign in, waits for the browser and stores the sealed grant', async () => {
  await using issuer = await startIssuer({ expiresIn: 3_600 })
  await using resource = await startResource({ issuers: [issuer], challengeScope: 'read' })
  await using at = await place(resource.url)
  const { code, stdout, stderr, page } = await signedIn(['auth', 'files'], at.cwd)
  expect(code).toBe(0)
  expect(stdout).toMatch(/^Signed in to files\./)
  expect(stderr).toContain(`sign in at ${issuer.url}`)
  expect(page).toContain('You are signed in')
  const kept = await readdir(join(at.cwd, 'state', 'vault'))
  const texts = await Promise.all(kept.map((name) => readFile(join(at.cwd, 'state', 'vault', name), 'utf8')))
  expect(texts.join()).not.toMatch(/access-|refresh-|files/)

  const listed = await toolway(['auth', '--list', '--json'], at)
  const { grants } = JSON.parse(listed.stdout)
  expect(grants).toMatchObject([
    { server: 'files', issuer: issuer.url, scopes: ['read'], renewable: true, principal: null },
  ])
  expect(listed.stdout).not.toMatch(/access-|refresh-/)
  expect((await toolway(['auth', '--list'], at)).stdout).toMatch(/^SERVER.*\nfiles .* read +valid/)

  expect((await toolway(['auth', 'files', '--logout'], at)).stdout).toMatch(/^Deleted the grant .*files/)
  expect(JSON.parse((await toolway(['auth', '--list', '--json'], at)).stdout)).toEqual({ grants: [] })
})

test('B6, B11: auth --json has the address first and the outcome last; the same port serves again', async () => {
  await using issuer = await startIssuer()
  await using resource = await startResource({ issuers: [issuer] })
  await using at = await place(resource.url, { perPrincipal: true })
  const words = ['auth', 'files', '--json', '--principal', 'ann']
  const [first, last] = (await signedIn(words, at.cwd)).stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))
  expect(first).toMatchObject({ issuer: issuer.url, url: expect.stringContaining('/authorize?') })
  expect(last).toMatchObject({ server: 'files', principal: 'ann', issuer: issuer.url })
  await signedIn(words, at.cwd)
  expect(issuer.registrations).toHaveLength(1)
})

test('B11: auth for a server with client credentials explains that no sign-in is needed', async () => {
  await using at = await place('http://127.0.0.1:9/mcp', {
    grant: 'client_credentials',
    clientId: 'toolway',
    clientSecret: 'a secret',
  })
  const { code, stderr } = await toolway(['auth', 'files'], at)
  expect(code).toBe(2)
  expect(stderr).toContain('mcpServers.files.auth')
  expect(stderr).not.toContain('tools show')
})

test('V4: a sign-in that is not completed in time names --timeout', async () => {
  await using issuer = await startIssuer()
  await using resource = await startResource({ issuers: [issuer] })
  await using at = await place(resource.url)
  const { code, stderr } = await toolway(['auth', 'files', '--timeout', '100ms'], at)
  expect(code).not.toBe(0)
  expect(stderr).toMatch(/within 0\.1 s \(--timeout\)/)
})

/** Begins to sign in, with somebody at another machine: where their browser is sent back to is not reached by it. */
async function elsewhere(words: readonly string[], cwd: string, interactive = false) {
  const stdin = Object.assign(new PassThrough(), interactive && { isTTY: true, setRawMode: () => stdin })
  const { shell, stdout, stderr } = recordedShell({ cwd, stdin, columns: interactive ? 80 : undefined })
  const finished = run(words, shell)
  const url = await until(() => /https?:\/\/\S+\/authorize\?[^\s"]+/.exec(stdout() + stderr())?.[0], {
    what: 'the address',
  })
  const { headers } = await fetch(url, { redirect: 'manual' })
  return { stdin, stdout, stderr, finished, address: headers.get('location') ?? '' }
}

test('B6, B11: from another machine the address is pasted, and checked as if the browser had come', async () => {
  await using issuer = await startIssuer()
  await using resource = await startResource({ issuers: [issuer] })
  await using at = await place(resource.url)
  const { stdin, stdout, stderr, finished, address } = await elsewhere(['auth', 'files', '--paste'], at.cwd)
  expect(stderr()).toMatch(/paste .*address here/)
  const forged = new URL(address)
  forged.searchParams.set('state', 'x'.repeat(43))
  const wrong = ['', 'what?', 'https://evil.example.com/', forged.href]
  stdin.write(wrong.map((line) => `${line}\n`).join(''))
  await until(() => stderr().split('This is not the expected address').length === wrong.length, {
    what: 'the refusals',
  })
  expect(issuer.tokenRequests).toEqual([])
  stdin.write(`  ${address}  \n`)
  expect(await finished).toBe(0)
  expect(stdout()).toMatch(/^Signed in to files\./)
  expect(stdin.isPaused()).toBe(true)
})

test('B6, B11: a terminal is read without --paste, and Ctrl+C quits', async () => {
  await using issuer = await startIssuer({ iss: 'https://evil.example.com' })
  await using resource = await startResource({ issuers: [issuer] })
  await using at = await place(resource.url)
  const words = ['auth', 'files', '--no-browser']
  const mixedUp = await elsewhere(words, at.cwd, true)
  mixedUp.stdin.write(`${mixedUp.address}\r`)
  expect(await mixedUp.finished).toBe(4)
  expect(mixedUp.stderr()).toContain('another authorization server')
  const leaving = await elsewhere(words, at.cwd, true)
  leaving.stdin.write('\u0003')
  expect(await leaving.finished).toBe(130)
  expect(issuer.tokenRequests).toEqual([])
})

test('B6, B11: errors say what to do, and unexpected requests change nothing', async () => {
  await using issuer = await startIssuer()
  await using resource = await startResource({ issuers: [issuer] })
  await using at = await place(resource.url)
  expect(await toolway(['auth'], at)).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('Servers that use OAuth: files'),
  })
  expect(await toolway(['auth', 'fils'], at)).toMatchObject({ code: 2, stderr: expect.stringContaining('"files"') })
  expect(await toolway(['auth', 'plain'], at)).toMatchObject({
    code: 2,
    stderr: expect.stringMatching(/plain is a program that Toolway starts.*\n.*mcpServers\.plain\.env/),
  })
  expect(await toolway(['auth', 'files', '--principal', 'x'], at)).toMatchObject({ code: 2 })
  issuer.behaviour.iss = 'https://evil.example.com'
  const refused = await signedIn(['auth', 'files'], at.cwd)
  expect(refused).toMatchObject({
    code: 4,
    stderr: expect.stringContaining('another authorization server'),
    stdout: '',
  })
  expect(refused.page).toContain('evil.example.com')
  issuer.behaviour.metadata = { code_challenge_methods_supported: [] }
  expect(await toolway(['auth', 'files'], at)).toMatchObject({ code: 4, stderr: expect.stringContaining('PKCE') })
})
