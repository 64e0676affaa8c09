import { expect } from 'vitest'
import { createManualClock } from '../../../tests/fixtures/clock.ts'
import { startProvider } from '../../../tests/fixtures/identity-provider.ts'
import { createKeptLog } from '../../../tests/fixtures/log.ts'
import type { JwtConfig } from '../../config/schema.ts'
import { HttpError } from '../errors.ts'
import { createAuthenticate } from './authenticate.ts'
import { createJwtVerifier } from './jwt.ts'

/** An identity provider, and authenticators that trust it; time stands still unless a test moves it. */
export async function openJwtFixture() {
  const open = new AsyncDisposableStack()
  const clock = createManualClock()
  const log = createKeptLog()
  const provider = open.use(await startProvider(clock.now))
  return {
    open,
    clock,
    log,
    provider,
    seconds: () => Math.floor(clock.now() / 1000),
    /** A way in for credentials. */
    authenticator(changes: Partial<JwtConfig> = {}, token: string | undefined = undefined) {
      const keys = { inUse: false, find: () => undefined }
      const config = provider.config(changes)
      const verify = config.disabled ? undefined : createJwtVerifier({ config, clock, log })
      const authenticate = open.use(createAuthenticate({ token, keys, verify, clock }))
      return async (credential: string) => authenticate(`Bearer ${credential}`)
    },
    [Symbol.asyncDispose]: () => open.disposeAsync(),
  }
}

/** What a refused credential is answered with; never an identity. */
export async function refused(attempt: Promise<unknown>): Promise<HttpError> {
  const outcome = await attempt.catch((error: unknown) => error)
  expect(outcome).toBeInstanceOf(HttpError)
  return outcome as HttpError
}

export async function expectInvalid(attempt: Promise<unknown>, sentence = /./): Promise<void> {
  const { status, message, details } = await refused(attempt)
  expect(status).toBe(401)
  const told = String(details.headers?.['WWW-Authenticate'])
  expect(told).toMatch(/^Bearer realm="toolway"(, resource_metadata="[^"]+")?, error="invalid_token"$/)
  expect(message).toMatch(sentence)
}

/** One part of a token made by hand. */
export const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url')
