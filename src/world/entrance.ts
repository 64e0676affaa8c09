import { isDeepStrictEqual } from 'node:util'
import type { Config } from '../config/schema.ts'
import { type Authenticate, createAuthenticate } from '../serve/authenticate/index.ts'
import { createKeys } from '../stores/keys.ts'
import type { Chosen } from './prepare.ts'
import type { Surroundings } from './surroundings.ts'

/** Who may come in, and the part of the configuration that says so. */
export interface Entrance {
  readonly authenticate: Authenticate & AsyncDisposable
  readonly auth: Config['auth']
}

/** Taken over from the world before where nothing has changed about it. */
export function entranceOf(
  { loaded: { config }, token, createVerifier }: Chosen,
  surroundings: Surroundings,
  before: (Chosen & { readonly entrance: Entrance }) | undefined,
): Entrance {
  const { auth, stores } = config
  const { clock, log } = surroundings
  if (before && before.token === token && isDeepStrictEqual(before.entrance.auth, auth)) return before.entrance
  const keys = createKeys({ configured: auth.keys, folder: stores.path, clock, log })
  const verify = auth.jwt && createVerifier?.({ config: auth.jwt, clock, log })
  return { auth, authenticate: createAuthenticate({ token, keys, verify, clock }) }
}
