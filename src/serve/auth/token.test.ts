import { describe, expect, test } from 'vitest'
import { HttpError } from '../errors.ts'
import { authenticateToken } from './token.fixture.ts'

describe('B6: bearer tokens', () => {
  const authenticate = authenticateToken('s3cret')

  test('the right token is an authenticated operator', () => {
    expect(authenticate('Bearer s3cret')).toEqual({ principal: 'token', authenticated: true, admin: true, agents: '*' })
    expect(authenticate('bearer s3cret')).toEqual({ principal: 'token', authenticated: true, admin: true, agents: '*' })
  })

  test.each([
    undefined,
    '',
    'Bearer',
    'Bearer ',
    'Bearer s3cre',
    'Bearer s3cret2',
    'Bearer S3CRET',
    'Basic s3cret',
    's3cret',
    'Bearer a s3cret',
  ])('%s is refused', (authorization) => {
    const tried = () => authenticate(authorization)
    expect(tried).toThrow(HttpError)
    expect(tried).toThrow(/Authorization: Bearer/)
  })

  test('without a configured token every caller is the same anonymous one, without admin rights', () => {
    const open = authenticateToken(undefined)
    expect(open(undefined)).toEqual({ principal: 'anonymous', authenticated: false, admin: false, agents: '*' })
  })

  test('a credential is refused where none is needed, instead of being ignored', () => {
    for (const authorization of ['Bearer anything', 'Basic YTpi', '']) {
      expect(() => authenticateToken(undefined)(authorization)).toThrow(HttpError)
    }
  })

  test('an empty token is never a way in', () => {
    expect(() => authenticateToken('')('Bearer ')).toThrow(HttpError)
  })
})
