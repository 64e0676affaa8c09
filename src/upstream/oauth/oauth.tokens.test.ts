import { expect, test } from 'vitest'
import { startIssuer } from './issuer.fixture.ts'
import { ask, memoryVault, openOAuth, serverConfig, signIn } from './oauth.fixture.ts'
import { createSeenTokens } from './oauth.ts'
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
    if (!other.tokens().includes(token)) unknown.push(token)
    response.writeHead(200).end()
  }
  expect(other.tokens()).toEqual([])
  await ask(other, config)
  expect(unknown).toEqual([])
  expect(other.tokens()).toEqual(one.tokens())
})

test('B6: of signed tokens the signature counts; the list changes when it has to, and is bounded', () => {
  const { add, list } = createSeenTokens()
  const signature = 's'.repeat(43)
  add(`head.claims.${signature}`)
  expect(list()).toEqual([signature])
  const before = list()
  add(`head.claims.${signature}`)
  expect(list()).toBe(before)
  add('a.b.c')
  expect(list()).toEqual([signature, 'a.b.c'])
  for (let number = 0; number < 300; number++) add(`token ${number}`)
  expect(list()).toHaveLength(256)
  expect(list().at(-1)).toBe('token 299')
})
