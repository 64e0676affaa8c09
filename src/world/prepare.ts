import { originOf, type ServerOrigin } from '../catalog/pins/origin.ts'
import { createPins, type Pins } from '../catalog/pins/pins.ts'
import type { LoadedConfig } from '../config/load.ts'
import type { Lasting } from '../lasting.ts'
import type { createJwtVerifier as CreateVerifier } from '../serve/authenticate/jwt.ts'
import { keptToken } from '../stores/token.ts'
import { type ChosenTraces, chooseTraces } from '../telemetry/traces/choose.ts'
import type { Plugins } from '../tools/plugins/index.ts'
import { version } from '../version.ts'
import type { Made } from './made.ts'
import { choosePlugins } from './plugins.ts'

/** A configuration with what had to be fetched for it: the token that clients must send, the pins of definitions. */
export interface Chosen extends ChosenTraces {
  readonly loaded: LoadedConfig
  readonly token: string | undefined
  readonly pins: Pins
  /** Where its servers come from. */
  readonly origins: ReadonlyMap<string, ServerOrigin>
  /** What checks the tokens of an identity provider; loaded only where there is one. */
  readonly createVerifier: typeof CreateVerifier | undefined
  readonly plugins: Made<Plugins>
}

/** Fetches what a configuration needs. Pins go on where the same ones are wanted. */
export async function prepare(
  loaded: LoadedConfig,
  { clock, log }: Pick<Lasting, 'clock' | 'log'>,
  before?: Chosen,
): Promise<Chosen> {
  const { auth, stores, policy, mcpServers } = loaded.config
  const token = auth.token === 'generated' ? await keptToken(stores.common) : auth.token
  const origins = new Map(Object.entries(mcpServers).map(([name, server]) => [name, originOf(server)]))
  const known = before?.loaded.config
  const same = known?.policy.pins === policy.pins && known.stores.path === stores.path
  const pins = same && before ? before.pins : await createPins({ mode: policy.pins, folder: stores.path, clock, log })
  const provided = auth.jwt !== undefined && !auth.jwt.disabled
  const createVerifier = provided ? (await import('../serve/authenticate/jwt.ts')).createJwtVerifier : undefined
  const tracing = { env: process.env, before: before?.traces, version, clock, log }
  const traced = await chooseTraces(loaded.config.telemetry.traces, tracing)
  const plugins = await choosePlugins(loaded.config.native.plugins, { clock, log }, before?.plugins)
  return { loaded, token: token === 'none' ? undefined : token, pins, origins, createVerifier, plugins, ...traced }
}
