import { afterEach, expect, test, vi } from 'vitest'
import { session, sessionError, startSession } from './session.ts'

afterEach(() => {
  session.value = 'unknown'
  sessionError.value = undefined
  vi.unstubAllGlobals()
})

/** A tab at the address of the dashboard. The gateway knows the tokens `boss` and `intern`. */
function openTab() {
  const location = { pathname: '/calls', search: '?agent=ci', hash: '' }
  const addresses: string[] = []
  vi.stubGlobal('window', Object.assign(new EventTarget(), { location }))
  vi.stubGlobal('history', { replaceState: (_: null, __: string, url: string) => addresses.push(url) })
  let principal = 'boss'
  vi.stubGlobal('fetch', async (_: string, { method, body }: { method?: string; body?: string }) => {
    if (method === 'POST') {
      const { token } = JSON.parse(body ?? '') as { token: string }
      if (token !== 'boss' && token !== 'intern') {
        return Response.json({ error: { code: 'AUTH_REQUIRED', message: 'Unknown token.' } }, { status: 401 })
      }
      principal = token
    }
    return Response.json({ principal, agent: 'ci', authenticated: true, admin: false, agents: ['ci'] })
  })
  return {
    addresses,
    openLink(hash: string) {
      location.hash = hash
      window.dispatchEvent(new Event('hashchange'))
    },
  }
}

test('G10: a link with a token signs in and leaves no token in the address, also in a tab with the dashboard', async () => {
  const { addresses, openLink } = openTab()
  await startSession()
  expect(session.value).toMatchObject({ principal: 'boss' })
  openLink('#main')
  expect(addresses).toEqual([])
  openLink('#token=intern')
  expect(addresses).toEqual(['/calls?agent=ci'])
  await expect.poll(() => session.value).toMatchObject({ principal: 'intern' })
  openLink('#token=unknown')
  await expect.poll(() => session.value).toBe('none')
  await expect.poll(() => sessionError.value?.status).toBe(401)
})
