import { expect, test } from 'vitest'
import { startIssuer } from './issuer.fixture.ts'
import { ask, memoryVault, openOAuth, serverConfig, signIn } from './oauth.fixture.ts'
import { SeenTokens } from './oauth.ts'
import { startResource } from './resource.fixture.ts'

test('B6: every access token is known before a server gets it, also one that another process has got', async () => {
  await using issuer = await startIssuer()
  await using resource = await startResource({ issuers: [issuer] })
  const [vault, config] = [memoryVault(), serverConfig(resource.url)]
  const [one, other] = [openOAuth({ vault }), openOAuth({ vault })]
  await signIn(one, config, issuer)
  const unknown: unknown[] = []
  resource.behaviour.answer = (response, authorization = '') => {
    const token = authorization.replace(/^Bearer /, '')
    if (!other.seen.current.includes(token)) unknown.push(token)
    response.writeHead(200).end()
  }
  expect(other.seen.current).toEqual([])
  await ask(other, config)
  expect(unknown).toEqual([])
  expect(other.seen.current).toEqual(one.seen.current)
})

test('B6: of signed tokens the signature counts; the list changes when it has to, and is bounded', () => {
  const seen = new SeenTokens()
  const signature = 's'.repeat(43)
  seen.add(`head.claims.${signature}`)
  expect(seen.current).toEqual([signature])
  const before = seen.current
  seen.add(`head.claims.${signature}`)
  expect(seen.current).toBe(before)
  seen.add('a.b.c')
  expect(seen.current).toEqual([signature, 'a.b.c'])
  for (let number = 0; number < 300; number++) seen.add(`token ${number}`)
  expect(seen.current).toHaveLength(256)
  expect(seen.current.at(-1)).toBe('token 299')
})
