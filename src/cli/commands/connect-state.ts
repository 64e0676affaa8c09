import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import { type Connections, createConnections } from '../../clients/connections.ts'
import { type ClientFile, clientFiles, type Surroundings } from '../../clients/places.ts'
import { type ClientKind, clientKinds, clientLabels } from '../../config/import/client-kind.ts'
import { folder, isFile } from '../../config/locate.ts'
import { systemClock } from '../../core/clock.ts'
import { homeOf } from '../../core/home.ts'
import { didYouMean } from '../../core/near.ts'
import type { Shell } from '../shell.ts'
import { UsageError } from '../usage.ts'

export const surroundings = ({ env, cwd }: Shell): Surroundings => ({ env, cwd, platform: process.platform })

/** Backups lie with the rest of what we remember, whatever configuration is in use. */
export function connectionsOf({ env }: Shell): Connections {
  const state = join(folder(env.XDG_STATE_HOME, join(homeOf(env), '.local', 'state')), 'toolway')
  return createConnections(join(state, 'clients'), () => systemClock.now())
}

/** The client that somebody means. */
export function clientNamed(name: string): ClientKind {
  const wanted = name.toLowerCase()
  const known = clientKinds.find((kind) => kind === wanted || clientLabels[kind].toLowerCase() === wanted)
  if (known) return known
  const longer = clientKinds.filter((kind) => kind.startsWith(wanted))
  throw new UsageError(
    longer.length > 0
      ? `There are several: ${longer.join(' and ')}.`
      : `There is no client ${name}${didYouMean(name, clientKinds)}`,
    `The clients are ${clientKinds.join(', ')}.`,
  )
}

/** The file of a client to edit: the first that is there, else the one that it would make. */
export async function fileOf(
  client: ClientKind,
  around: Surroundings,
  scope: ClientFile['scope'],
): Promise<ClientFile> {
  const candidates = clientFiles(around, [client]).filter((file) => file.scope === scope)
  for (const file of candidates) if (await isFile(file.path)) return file
  const [first] = candidates
  if (first) return first
  throw new UsageError(`${clientLabels[client]} has no file in a project.`, 'Leave out --project.')
}

/** Whether a folder is there: a client that was never started has none. */
export const isFolder = (path: string): Promise<boolean> =>
  stat(path).then(
    (facts) => facts.isDirectory(),
    () => false,
  )
