import type { ClientFile } from '../../clients/client-files.ts'
import { type ClientText, ownName } from '../../clients/entry.ts'
import { replaceFile } from '../../clients/file.ts'
import { adaptServer } from '../../clients/import-plan.ts'
import { clientLabels } from '../../config/import/client-kind.ts'
import type { ServersFile } from '../../config/import/read-servers.ts'
import type { LoadedConfig } from '../../config/load.ts'
import { keyPath } from '../../config/tree.ts'
import { type Output, type Shell, shortPath, UsageError } from '../kit.ts'
import { printDiff } from '../print-diff.ts'
import { knownIn, lookInto, withServers } from './config-file.ts'
import { count, noteOf, prepareImport } from './prepare-import.ts'

/** Servers that move from a client's file into our configuration. */
export interface ServerMove {
  /** Their names in the client's file. */
  readonly names: readonly string[]
  /** Servers that cannot be moved. */
  readonly kept: readonly string[]
  preview(output: Output): void
  /** Writes our configuration; called before the client's file is written. */
  write(): Promise<void>
  tell(output: Output): void
}

export const noMove: ServerMove = { names: [], kept: [], preview() {}, write: async () => {}, tell() {} }

/** Plans to move all servers of a client except our own entry behind Toolway. */
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
  const movable = found.filter(({ server }) => server && server.problems.length === 0)
  const kept = found.filter((one) => !movable.includes(one)).map(({ name }) => name)
  const servers = movable.flatMap(({ server }) => (server ? [adaptServer(server, { client, path, scope }, into)] : []))
  const target = await lookInto(into, shortPath(into, shell))
  const known = await knownIn(target, shell)
  const prepared = await prepareImport(shell, servers, known, 'file')
  const after = withServers(target, prepared, shortPath(into, shell))
  const names = movable.map(({ name }) => name)
  return {
    names,
    kept,
    preview(output) {
      if (after !== target.text) {
        output.print(output.paint('bold', shortPath(into, shell)))
        printDiff(target.text, after, [...known.values()], output)
      }
      for (const name of kept) {
        output.note(output.paintNote('yellow', `${name} stays in ${clientLabels[client]}: Toolway cannot run it.`))
      }
    },
    async write() {
      if (prepared.added.length === 0) return
      await prepared.writeSecrets()
      await replaceFile(target, Buffer.from(target.mark + after))
    },
    tell(output) {
      if (names.length > 0) output.print(`Moved ${count(names.length, 'server')} behind Toolway: ${names.join(', ')}.`)
      noteOf(prepared, output, 'file')
    },
  }
}
