import type { ClientFile } from '../../clients/client-files.ts'
import { type ClientText, ownName } from '../../clients/entry.ts'
import { adaptServer } from '../../clients/import-plan.ts'
import { clientLabels } from '../../config/import/client-kind.ts'
import type { ServersFile } from '../../config/import/read-servers.ts'
import type { LoadedConfig } from '../../config/load.ts'
import { problemText } from '../../config/problems.ts'
import { keyPath } from '../../config/tree.ts'
import { pluralize } from '../../lib/pluralize.ts'
import { type Output, type Shell, shortPath, UsageError } from '../kit.ts'
import { planServers } from './config-file.ts'
import { noteOf } from './import-notes.ts'

/** Servers that move from a client's file into our configuration. */
export interface ServerMove {
  /** The servers' names in the client's file. */
  readonly names: readonly string[]
  /** Servers that cannot be moved. */
  readonly kept: readonly string[]
  preview(output: Output): void
  /** Writes our configuration; called before the client's file is written. */
  write(): Promise<void>
  report(output: Output): void
}

export const noMove: ServerMove = { names: [], kept: [], preview() {}, write: async () => {}, report() {} }

/** Plans to move all of a client's servers, except our own entry, into our configuration. */
export async function planMove(
  shell: Shell,
  file: ClientFile,
  text: ClientText,
  content: ServersFile,
  loaded: LoadedConfig,
): Promise<ServerMove> {
  const into = loaded.files.findLast(({ path, dialect }) => dialect === 'toolway' && /\.ya?ml$/.test(path))?.path
  if (into === undefined) {
    throw new UsageError('There is no toolway.yaml to move the servers into.', 'Run `toolway init` to write one.')
  }
  const { client, path, scope } = file
  const others = Object.keys(text.servers).filter((name) => name !== ownName)
  const found = others.map((name) => ({
    name,
    server: content.servers.find(({ key }) => key === keyPath([...text.path, name])),
  }))
  const movable = found.flatMap(({ name, server }) => (server?.problems.length === 0 ? [{ name, server }] : []))
  const names = movable.map(({ name }) => name)
  const kept = others.filter((name) => !names.includes(name))
  const servers = movable.map(({ server }) => adaptServer(server, { client, path, scope }, into))
  const target = { path: into, named: shortPath(into, shell) }
  const { prepared, preview, write } = await planServers(shell, target, servers, 'file')
  return {
    names,
    kept,
    preview(output) {
      preview(output)
      for (const { name, server } of found.filter((one) => kept.includes(one.name))) {
        const [problem] = server?.problems ?? []
        const reason = problem ? problemText(problem) : 'Toolway cannot run it'
        output.warn(`${name} stays in ${clientLabels[client]}: ${reason}.`)
      }
    },
    async write() {
      if (prepared.added.length > 0) await write()
    },
    report(output) {
      if (names.length > 0)
        output.print(`Moved ${pluralize(names.length, 'server')} behind Toolway: ${names.join(', ')}.`)
      noteOf(prepared, output, 'file')
    },
  }
}
