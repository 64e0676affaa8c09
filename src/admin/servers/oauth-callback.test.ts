import { expect, test } from 'vitest'
import { openTestAdmin } from '../admin.fixture.ts'

test('B6: only an operator can begin a sign-in, which returns to the address of the request', async () => {
  await using people = await openTestAdmin({
    config: { allowedHosts: ['tools.example.com'], allowedOrigins: ['https://tools.example.com'] },
  })
  const begun = await people.api('servers/files/sign-in', { body: {} })
  expect(begun.json).toEqual({ url: 'https://id.example.com/authorize?x=y' })
  const headers = { host: 'tools.example.com', origin: 'https://tools.example.com' }
  await people.api('servers/files/sign-in', { body: {}, headers })
  expect(people.asked.map(({ given }) => given)).toEqual([
    { name: 'files', redirect: `${people.origin}/oauth/callback` },
    { name: 'files', redirect: 'https://tools.example.com/oauth/callback' },
  ])
  expect((await people.api('servers/files/sign-in', { body: {}, token: 'dev' })).status).toBe(403)
  expect((await people.raw('/admin/api/servers/files/sign-in', { method: 'POST' })).status).toBe(401)
  expect(
    (await people.api('servers/files/sign-in', { body: {}, headers: { origin: 'https://evil.example' } })).status,
  ).toBe(403)
})

test('B6: the callback needs no credential, and redirects to the page of the server or shows an error page without scripts', async () => {
  await using people = await openTestAdmin()
  const good = await people.raw('/oauth/callback?code=c&state=known&iss=https%3A%2F%2Fid', {
    headers: { accept: 'text/html' },
  })
  expect([good.status, good.headers.location]).toEqual([303, '/servers/files?signIn=done'])
  expect(good.headers['referrer-policy']).toBe('no-referrer')
  expect(people.asked.at(-1)?.given).toEqual({ code: 'c', state: 'known', iss: 'https://id' })
  const bad = await people.raw('/oauth/callback?code=c&state=other')
  expect(bad.status).toBe(400)
  expect(bad.headers['content-security-policy']).toContain("default-src 'none'")
  expect(bad.text).toContain('No sign-in waits for &#60;this&#62;.')
  expect((await people.raw('/oauth/callback', { method: 'POST' })).status).toBe(405)
  expect((await people.raw('/oauth/callback', { headers: { host: 'evil.example' } })).status).toBe(403)
})
