import { stat } from 'node:fs/promises'
import { isDeepStrictEqual } from 'node:util'
import { moduleFile } from '../here.ts'
import type { Lasting } from '../lasting.ts'
import { loadPlugins, type Plugins } from '../tools/plugins/index.ts'
import type { Made } from './made.ts'

/** Loads plugins with what they need of ours; throws `PluginsRefused` where one of them cannot be. */
export function openPlugins(
  paths: readonly string[],
  { clock, log }: Pick<Lasting, 'clock' | 'log'>,
): Promise<Plugins> {
  const modules = { library: moduleFile('tools/plugins/library'), child: moduleFile('tools/plugins/isolated/child') }
  return loadPlugins(paths, { modules, clock, log })
}

/** Plugins go on where neither their list nor any of their files has changed. */
export async function choosePlugins(
  paths: readonly string[],
  surroundings: Pick<Lasting, 'clock' | 'log'>,
  known: Made<Plugins> | undefined,
): Promise<Made<Plugins>> {
  if (known && isDeepStrictEqual(known.from, await stateOf(paths, known.value.places))) return known
  const value = await openPlugins(paths, surroundings)
  return { value, from: await stateOf(paths, value.places) }
}

/** What tells one state of files from another. */
async function stateOf(paths: readonly string[], places: readonly string[]): Promise<unknown> {
  const files = await Promise.all(places.map((place) => stat(place).catch(() => undefined)))
  return [paths, files.map((file) => file && [file.mtimeMs, file.size, file.ino])]
}
