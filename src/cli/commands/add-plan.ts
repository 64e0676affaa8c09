import { join } from 'node:path'
import type { PlannedServer } from '../../clients/import-plan.ts'
import { placed } from '../../clients/merge.ts'
import { type NewServer, serversBlock } from '../../clients/yaml-servers.ts'
import { kindOf } from '../../config/import/client-kind.ts'
import type { Definition } from '../../config/import/read-servers.ts'
import { ConfigError } from '../../config/problems.ts'
import { keyPath } from '../../config/tree.ts'
import type { Shell } from '../shell.ts'
import { starterWith } from '../starter.ts'
import { edited } from '../told.ts'
import { UsageError } from '../usage.ts'
import { type ConfigFile, refuseWorse } from './edit-config.ts'
import { type Prepared, prepare } from './import-prepare.ts'

/** A server on its way into a file: checked, and not yet written. */
export interface Addition {
  readonly server: PlannedServer
  readonly prepared: Prepared
  readonly after: string
}

/** Thinks it through: where its secrets go, what the file will say, and whether that is a configuration. */
export async function planAddition(
  shell: Shell,
  file: ConfigFile,
  name: string,
  definition: Definition,
): Promise<Addition> {
  const origin = { path: join(shell.cwd, 'toolway'), scope: 'user' as const }
  const found = placed({ name, definition, key: '', impliedFolder: shell.cwd, problems: [] }, origin, file.path)
  const prepared = await prepare(shell, [found], new Map(), 'file')
  const server = prepared.added[0] as PlannedServer
  const waiting = server.waiting.length > 0 && { comment: `disabled until there is ${server.waiting.join(', ')}` }
  const fileWith = (one: Definition): string =>
    withServer(file, { name, definition: kindOf(file.path) ? typed(one) : one, ...waiting })
  // Its secrets are not yet where it will refer to them, so what is checked has them in it.
  await refuseUnfit(file, name, fileWith({ ...found.definition, ...(waiting && { disabled: true }) }))
  return { server, prepared, after: fileWith(server.definition) }
}

/** A new file is one that explains itself. */
function withServer({ before, path, named, text }: ConfigFile, server: NewServer): string {
  if (!before.bytes && /\.ya?ml$/.test(path)) return starterWith(serversBlock([server]))
  return edited(named, () => text.set(server))
}

/** Clients want to be told how a URL is reached. */
function typed({ transport, ...rest }: Definition): Definition {
  if (rest.url === undefined) return rest
  return { type: transport ?? (/\/sse\/?$/.test(String(rest.url)) ? 'sse' : 'http'), ...rest }
}

/** What is wrong with the server itself is a matter of the command line, not of a line in a file. */
async function refuseUnfit(file: ConfigFile, name: string, draft: string): Promise<void> {
  try {
    await refuseWorse(file, draft)
  } catch (thrown) {
    if (!(thrown instanceof ConfigError)) throw thrown
    const prefix = `${keyPath(['mcpServers', name])}.`
    const own = thrown.problems.filter(({ key }) => `${key}.`.startsWith(prefix))
    if (own.length === 0) throw thrown
    const faults = own.map(({ key, message }) => [key.slice(prefix.length), message].filter(Boolean).join(': '))
    throw new UsageError(`${name} cannot be added like this: ${faults.join('; ')}.`, 'Nothing was written.')
  }
}
