import { isLoopback } from '../lib/url.ts'
import { ConfigError, type ConfigProblem } from './problems.ts'
import type { Config } from './schema.ts'
import type { Path } from './tree.ts'

export const isOpenToOthers = ({ auth, server }: Pick<Config, 'auth' | 'server'>): boolean =>
  auth.token === 'none' && !isLoopback(server.host)

/** Minimum length of a token; shorter ones could be guessed. */
export const minTokenLength = 16

export const hasShortToken = ({ auth: { token } }: Pick<Config, 'auth'>): boolean =>
  token !== 'generated' && token !== 'none' && token.length < minTokenLength

/**
 * Throws if other machines could use the gateway with a guessed token, or without a credential and
 * `server.allowUnauthenticated` is not set. Pass the effective configuration, which can differ from the files: `--host` overrides `server.host`, and some keys
 * apply only after a restart.
 */
export function refuseUnauthenticated({
  config,
  problemAt,
}: {
  readonly config: Pick<Config, 'auth' | 'server'>
  problemAt(path: Path, message: string): ConfigProblem
}): void {
  const { server } = config
  if (hasShortToken(config) && !isLoopback(server.host)) {
    const sentence = `with fewer than ${minTokenLength} characters, it can be guessed by anyone who can reach ${server.host}; set auth.token: generated, or server.host: 127.0.0.1`
    throw new ConfigError([problemAt(['auth', 'token'], sentence)])
  }
  if (!isOpenToOthers(config) || server.allowUnauthenticated) return
  const sentence =
    `with none, anyone who can reach ${server.host} may use every tool without a credential; set auth.token: generated, ` +
    'or server.host: 127.0.0.1, or, if this is intended, server.allowUnauthenticated: true'
  throw new ConfigError([problemAt(['auth', 'token'], sentence)])
}
