import { stat } from 'node:fs/promises'
import { isDeepStrictEqual } from 'node:util'
import { originOf } from '../catalog/pins/origin.ts'
import { createPins } from '../catalog/pins/pins.ts'
import type { LoadedConfig } from '../config/load.ts'
import { moduleFile } from '../here.ts'
import type { Lasting } from '../lasting.ts'
import { keptToken } from '../stores/token.ts'
import { chooseTraces } from '../telemetry/traces/choose.ts'
import { loadPlugins, type Plugins } from '../tools/plugins/index.ts'
import { version } from '../version.ts'
import type { Made } from './made.ts'
import type { Chosen, World } from './world.ts'

/** Fetches what a configuration needs. Pins go on where the same ones are wanted. */
export async function prepare(
  loaded: LoadedConfig,
  { clock, log }: Pick<Lasting, 'clock' | 'log'>,
  before?: World,
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
  const plugins = await choosePlugins(loaded.config.native.plugins, { clock, log }, before)
  return { loaded, token: token === 'none' ? undefined : token, pins, origins, createVerifier, plugins, ...traced }
}

/** Plugins go on where neither their list nor any of their files has changed. */
async function choosePlugins(
  paths: readonly string[],
  { clock, log }: Pick<Lasting, 'clock' | 'log'>,
  before: World | undefined,
): Promise<Made<Plugins>> {
  const known = before?.plugins
  if (known && isDeepStrictEqual(known.from, await stateOf(paths, known.value.places))) return known
  const modules = { library: moduleFile('tools/plugins/library'), child: moduleFile('tools/plugins/isolated/child') }
  const value = await loadPlugins(paths, { modules, clock, log })
  return { value, from: await stateOf(paths, value.places) }
}

/** What tells one state of files from another. */
async function stateOf(paths: readonly string[], places: readonly string[]): Promise<unknown> {
  const files = await Promise.all(places.map((place) => stat(place).catch(() => undefined)))
  return [paths, files.map((file) => file && [file.mtimeMs, file.size, file.ino])]
}
