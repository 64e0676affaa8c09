import type { ChangeListener } from '../catalog/changes.ts'
import type { Pins } from '../catalog/pins/pins.ts'
import { watchDefinitions } from '../catalog/pins/watch-definitions.ts'
import { cachedTools } from '../config/cached-tools.ts'
import type { Log } from '../core/log.ts'
import type { Cache } from '../pipeline/cache/cache.ts'
import type { Server } from '../upstream/server.ts'
import { createListsChanged } from './lists-changed.ts'
import type { World } from './world.ts'

/** What hears of whatever happens in a world, and outlives it. */
export interface Watching {
  present(): World
  readonly cache: Pick<Cache, 'invalidate'>
  /** Lists of callers may have changed. */
  readonly changed: ChangeListener
  /** A server that was not there before. */
  added(name: string, server: Server): void
  readonly log: Log
}

/** Starts what is new in a world, and says what there is to say about it. */
export async function beginWorld(next: World, before: World | undefined, watching: Watching): Promise<void> {
  const { servers, catalog, pins, origins } = next
  watching.log.conceal?.(next.redactor.line)
  announce(next, before, watching.log)
  catalog.onChange(watching.changed)
  if (pins !== before?.pins) watchPins(pins, watching)
  pins.noteOrigins(origins)
  const added = [...servers].filter(([name, { server }]) => before?.servers.get(name)?.server !== server)
  for (const [name, { server }] of added) watchServer(name, server, watching)
  await Promise.all(added.map(([, { server }]) => server.start()))
}

/** Says what there is to say about a configuration, as far as it was not said about the one before. */
function announce({ warnings, loaded }: World, before: World | undefined, log: Log): void {
  const cached = cachedTools(loaded.config)
  if (cached.length > 0 && cached.join() !== (before && cachedTools(before.loaded.config).join())) {
    log.info({ tools: cached }, 'results of these tools are cached')
  }
  for (const warning of warnings) if (!before?.warnings.includes(warning)) log.warn({}, warning)
}

// What listens for long is set up in functions of its own: closures of one function share all that any of them
// holds, and nothing that outlives a world may hold the one before it.

function watchPins(pins: Pins, { cache, present }: Watching): void {
  pins.onChange((changed) => {
    for (const name of changed) cache.invalidate(name)
    present().catalog.reconsider()
  })
}

function watchServer(name: string, server: Server, { cache, present, added }: Watching): void {
  watchDefinitions(server, { check: (entry) => present().pins.check(entry) })
  const listsChanged = createListsChanged(server)
  server.onChange(() => {
    if (listsChanged()) cache.invalidate(name)
  })
  added(name, server)
}
