import type { ClientFile } from '../../clients/client-files.ts'
import { type ClientText, ownName } from '../../clients/entry.ts'
import { adaptServer } from '../../clients/import-plan.ts'
import { clientLabels } from '../../config/import/client-kind.ts'
import { clientOnly } from '../../config/import/client-server.ts'
import type { ConfigDialect } from '../../config/import/dialect.ts'
import type { ReadServer, ServersFile } from '../../config/import/read-servers.ts'
import type { LoadedConfig } from '../../config/load.ts'
import { problemText } from '../../config/problems.ts'
import { keyPath } from '../../config/tree.ts'
import { pluralize } from '../../lib/message-text.ts'
import { type Output, type Shell, shortPath, UsageError } from '../kit.ts'
import { planServers } from './config-file.ts'
import { noteOf } from './import-notes.ts'

/** Servers that move from a client's file into our configuration. */
export interface ServerMove {
  /** The servers' names in the client's file. */
  readonly names: readonly string[]
  readonly kept: readonly string[]
  /** What the client's file says about the moved servers that has no effect in Toolway. */
  readonly warnings: readonly string[]
  preview(output: Output): void
  /** Writes our configuration; called before the client's file is written. */
  write(): Promise<void>
  report(output: Output): void
}

export const noMove: ServerMove = {
  names: [],
  kept: [],
  warnings: [],
  preview() {},
  write: async () => {},
  report() {},
}

/** Plans to move all of a client's servers, except our own entry, into our configuration. */
export async function planMove(
  shell: Shell,
  file: ClientFile,
  text: ClientText,
  content: ServersFile,
  loaded: LoadedConfig,
): Promise<ServerMove> {
  const written = (wanted: ConfigDialect) =>
    loaded.files.findLast(({ path, dialect }) => dialect === wanted && /\.ya?ml$/.test(path))?.path
  // A configuration with no section other than `mcpServers` counts as a plain list of servers.
  const into = written('toolway') ?? written('mcpServers')
  if (into === undefined) {
    throw new UsageError('There is no toolway.yaml to move the servers into.', 'Run `toolway init` to write one.')
  }
  const { client, path, scope } = file
  const others = Object.keys(text.servers).filter((name) => name !== ownName)
  const found = others.map((name) => {
    const server = content.servers.find(({ key }) => key === keyPath([...text.path, name]))
    return { name, server, reason: reasonToKeep(text.servers[name], server) }
  })
  const movable = found.flatMap(({ name, server, reason }) => (server && !reason ? [{ name, server }] : []))
  const names = movable.map(({ name }) => name)
  const kept = others.filter((name) => !names.includes(name))
  const servers = movable.map(({ server }) => adaptServer(server, { client, path, scope }, into))
  const target = { path: into, named: shortPath(into, shell) }
  const { prepared, preview, write } = await planServers(shell, target, servers, 'file')
  const keys = names.map((name) => keyPath(['mcpServers', name]))
  const warnings = content.warnings.filter((one) =>
    keys.some((key) => one.startsWith(key) && /[.:]/.test(one.charAt(key.length))),
  )
  return {
    names,
    kept,
    warnings,
    preview(output) {
      preview(output)
      for (const warning of warnings) output.warn(`${clientLabels[client]}: ${warning}`)
      for (const { name, reason } of found) {
        if (reason !== undefined) output.warn(`${name} stays in ${clientLabels[client]}: ${reason}.`)
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

function reasonToKeep(written: unknown, server: ReadServer | undefined): string | undefined {
  if (!server) return 'Toolway cannot run it'
  const [problem] = server.problems
  return problem ? problemText(problem) : clientOnly(written as Readonly<Record<string, unknown>>)
}
