import { mkdir, rm, utimes, writeFile } from 'node:fs/promises'
import { request } from 'node:http'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { afterEach, describe, expect, test } from 'vitest'
import { temporaryFolder } from '../../../tests/fixtures/folders.ts'
import { openTestAdmin } from '../../admin/admin.fixture.ts'

let stack = new AsyncDisposableStack()
afterEach(async () => {
  await stack.disposeAsync()
  stack = new AsyncDisposableStack()
})

const script = `console.log(${JSON.stringify('x'.repeat(2_000))})`

/** A dashboard as it is built, and something beside it that is nobody's business. */
async function open() {
  const { path: root } = stack.use(await temporaryFolder())
  const folder = join(root, 'dist')
  await mkdir(join(folder, 'assets'), { recursive: true })
  await Promise.all([
    writeFile(join(root, 'secret.json'), '"secret"'),
    writeFile(join(folder, 'index.html'), '<!doctype html><title>Toolway</title>'),
    writeFile(join(folder, 'assets/index-BxY12_9a.js'), script),
    writeFile(join(folder, 'favicon.svg'), '<svg/>'),
    writeFile(join(folder, 'notes.md'), 'of no known type'),
  ])
  const server = stack.use(await openTestAdmin({ folder }))
  return { ...server, folder }
}

const html = { accept: 'text/html,application/xhtml+xml,*/*;q=0.8' }

describe('G10: the dashboard', () => {
  test('is served at / with a strict policy and without a credential', async () => {
    const { raw } = await open()
    const { status, headers, text } = await raw('/')
    expect([status, text]).toEqual([200, '<!doctype html><title>Toolway</title>'])
    expect(headers).toMatchObject({
      'content-type': 'text/html; charset=utf-8',
      'cache-control': 'no-cache',
      'x-content-type-options': 'nosniff',
      'referrer-policy': 'no-referrer',
    })
    expect(headers['content-security-policy']).toBe(
      "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; media-src data:; connect-src 'self'; base-uri 'none'; frame-ancestors 'none'; form-action 'none'",
    )
  })

  test('is the same page at every path for a browser, and a 404 for a program', async () => {
    const { raw } = await open()
    for (const path of ['/servers', '/tools/files.read', '/calls/c1?range=1h', '/a/b/c']) {
      expect((await raw(path, { headers: html })).text).toContain('<title>Toolway')
      expect((await raw(path)).status).toBe(404)
    }
    for (const path of ['/assets/gone-12345678.js', '/.well-known/oauth-protected-resource', '/notes.md']) {
      expect([path, (await raw(path, { headers: path === '/notes.md' ? {} : html })).status]).toEqual([path, 404])
    }
    expect((await raw('/', { method: 'POST', headers: html })).status).toBe(404)
  })

  test('is cached forever where names contain a hash, and revalidated otherwise', async () => {
    const { raw } = await open()
    const asset = await raw('/assets/index-BxY12_9a.js')
    expect(asset.headers['cache-control']).toBe('public, max-age=31536000, immutable')
    expect(asset.headers['content-type']).toBe('text/javascript; charset=utf-8')
    const icon = await raw('/favicon.svg')
    expect(icon.headers['cache-control']).toBe('no-cache')
    const again = await raw('/favicon.svg', { headers: { 'if-none-match': `"other", W/${icon.headers.etag}` } })
    expect([again.status, again.text, again.headers.etag]).toEqual([304, '', icon.headers.etag])
    expect((await raw('/', { headers: { 'if-none-match': String(icon.headers.etag) } })).status).toBe(200)
  })

  test('is compressed for clients that accept gzip', async () => {
    const { origin } = await open()
    const bytes = await bytesOf(`${origin}/assets/index-BxY12_9a.js`, '/assets/index-BxY12_9a.js', {
      'accept-encoding': 'br, gzip',
    })
    expect(bytes.headers).toMatchObject({ 'content-encoding': 'gzip', vary: 'Accept-Encoding' })
    expect(bytes.body.length).toBeLessThan(200)
    expect(gunzipSync(bytes.body).toString()).toBe(script)
  })

  test('that was built again is served in its new version', async () => {
    const { raw, folder } = await open()
    await raw('/')
    await writeFile(join(folder, 'index.html'), 'second')
    await writeFile(join(folder, 'assets/index-Second12.js'), 'second')
    await utimes(join(folder, 'index.html'), 1, 1)
    expect((await raw('/')).text).toBe('second')
    expect((await raw('/assets/index-Second12.js')).status).toBe(200)
  })

  test('that was not built is a page in plain text that says so', async () => {
    const { raw, folder } = await open()
    await rm(folder, { recursive: true })
    for (const path of ['/', '/servers']) {
      const { status, headers, text } = await raw(path, { headers: html })
      expect([status, headers['content-type']]).toEqual([404, 'text/plain; charset=utf-8'])
      expect(text).toMatch(/not built.*npm run build.*\/mcp.*\/admin\/api/s)
    }
    expect((await raw('/favicon.svg')).status).toBe(404)
  })

  test('B6: is refused for another Origin or Host', async () => {
    const { raw } = await open()
    expect((await raw('/', { headers: { host: 'rebound.example.com' } })).status).toBe(403)
    expect((await raw('/favicon.svg', { headers: { origin: 'https://evil.example.com' } })).status).toBe(403)
  })
})

describe('abuse: paths', () => {
  test('no path leads out of the folder', async () => {
    const { origin } = await open()
    const beside = ['secret.json', 'dist/index.html']
    const ways = [
      '../',
      '..%2f',
      '%2e%2e/',
      '%2e%2e%2f',
      '..\\',
      '..%5c',
      'assets/../../',
      '/',
      './../',
      '..%00/',
      '%252e%252e/',
    ]
    for (const name of beside) {
      for (const way of ways) {
        const { status, body } = await bytesOf(origin, `/${way}${name}`, {})
        expect([way, status, body.toString().includes('secret"')]).toEqual([way, 404, false])
      }
    }
    for (const path of ['/%', '/%ff', '/__proto__', '/constructor', `/${'a'.repeat(8_000)}`]) {
      expect([path.slice(0, 20), (await bytesOf(origin, path, {})).status]).toEqual([path.slice(0, 20), 404])
    }
  })
})

/** One request with its path exactly as written. */
function bytesOf(origin: string, path: string, headers: Record<string, string>) {
  const { promise, resolve, reject } = Promise.withResolvers<{
    status: number
    headers: NodeJS.Dict<string | string[]>
    body: Buffer
  }>()
  const { hostname, port } = new URL(origin)
  const outgoing = request({ hostname, port, path, headers, agent: false }, async (response) => {
    const chunks: Buffer[] = []
    for await (const chunk of response) chunks.push(chunk)
    resolve({ status: response.statusCode ?? 0, headers: response.headers, body: Buffer.concat(chunks) })
  })
  outgoing.on('error', reject).end()
  return promise
}
