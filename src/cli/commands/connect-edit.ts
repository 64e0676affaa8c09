import { type ClientText, clientText, ownName } from '../../clients/edit.ts'
import { entryFor, type Way } from '../../clients/entry.ts'
import { look, type Snapshot } from '../../clients/file.ts'
import type { ClientFile } from '../../clients/places.ts'
import { variablesIn } from '../../clients/secrets.ts'
import { clientLabels } from '../../config/import/client-kind.ts'
import { type Definition, readServers } from '../../config/import/read-servers.ts'
import type { LoadedConfig } from '../../config/load.ts'
import { homeOf } from '../../core/home.ts'
import { short } from '../home.ts'
import { type CommonOptions, load } from '../load.ts'
import type { Shell } from '../shell.ts'
import { edited } from '../told.ts'
import { UsageError } from '../usage.ts'
import { type Move, noMove, planMove } from './connect-move.ts'
import { type WayOptions, wayTo } from './connect-way.ts'

export interface EditOptions extends CommonOptions, WayOptions {
  readonly replace?: boolean
}

/** An edit of a client's file that has been thought through and not yet been done. */
export interface Edit {
  readonly file: ClientFile
  readonly before: Snapshot
  readonly after: string
  /** Absent where our entry is taken out. */
  readonly way?: Way
  readonly entry?: object
  readonly move: Move
  /** The servers in the file, whose secrets must not be shown. */
  readonly servers: readonly Definition[]
  /** What our configuration takes from the environment: of a client's, nobody knows. */
  readonly variables: readonly string[]
}

/** The file with our entry in it. */
export async function connected(file: ClientFile, shell: Shell, options: EditOptions): Promise<Edit> {
  const { client, path } = file
  const loaded = await load(shell, options)
  refuseOwnFile(loaded, file, shell)
  const way = await wayTo(loaded, options)
  const before = await look(path)
  const text = textOf(file, before, shell)
  const entry = fitting(entryFor(client, clientLabels[client], way), text)
  const content = await readServers(path, homeOf(shell.env), client)
  const move = options.replace ? await planMove(shell, file, text, content, loaded) : noMove
  return {
    file,
    before,
    after: edited(short(path, shell), () => text.edited(entry, move.names)),
    way,
    entry,
    move,
    servers: content.servers.map(({ definition }) => definition),
    variables: way.kind === 'stdio' ? await variablesOf(loaded, shell) : [],
  }
}

/** The file without our entry. */
export async function disconnected(file: ClientFile, shell: Shell): Promise<Edit> {
  const before = await look(file.path)
  const text = textOf(file, before, shell)
  const { servers } = await readServers(file.path, homeOf(shell.env), file.client)
  const there = Object.hasOwn(text.servers, ownName)
  return {
    file,
    before,
    after: there ? edited(short(file.path, shell), () => text.edited(undefined)) : before.text,
    move: noMove,
    servers: servers.map(({ definition }) => definition),
    variables: [],
  }
}

const textOf = ({ client, path }: ClientFile, { text }: Snapshot, shell: Shell): ClientText =>
  edited(short(path, shell), () => clientText(client, path, text))

/** The newer form of OpenCode, which has its servers one level deeper, does not know `enabled`. */
function fitting(entry: { enabled?: unknown }, { path }: ClientText): object {
  const { enabled: _, ...rest } = entry
  return path.length > 1 ? rest : entry
}

/** Toolway would read the file that tells the client to start Toolway. */
function refuseOwnFile({ files }: LoadedConfig, { path, client }: ClientFile, shell: Shell): void {
  if (!files.some((file) => file.path === path)) return
  throw new UsageError(
    `${short(path, shell)} is the file of ${clientLabels[client]} itself.`,
    '`toolway init` writes a configuration for Toolway from it; then connect again.',
  )
}

/** Programs get these wherever they are started. */
const everywhere = ['HOME', 'PATH', 'USER', 'LOGNAME', 'SHELL', 'TMPDIR', 'USERPROFILE', 'APPDATA']

async function variablesOf({ files }: LoadedConfig, { env }: Shell): Promise<string[]> {
  const contents = await Promise.all(files.map(({ path }) => readServers(path, homeOf(env))))
  const used = contents.flatMap(({ servers }) => servers.map(({ definition }) => definition))
  return variablesIn(used.filter(({ disabled }) => disabled !== true)).filter((name) => !everywhere.includes(name))
}
