import { join } from 'node:path'
import { replace, type Snapshot } from '../../clients/file.ts'
import { filesIn } from '../../clients/secrets.ts'
import { type ServersText, serversText } from '../../clients/servers-text.ts'
import { clientLabels, kindOf } from '../../config/import/client-kind.ts'
import { type Definition, readServers } from '../../config/import/read-servers.ts'
import { loadConfig } from '../../config/load.ts'
import { locate } from '../../config/locate.ts'
import { ConfigError, type ConfigProblem } from '../../config/problems.ts'
import { homeOf } from '../../core/home.ts'
import { short } from '../home.ts'
import type { CommonOptions } from '../load.ts'
import type { Output } from '../output.ts'
import { printDiff } from '../print-diff.ts'
import { type Shell, spelling } from '../shell.ts'
import { edited } from '../told.ts'
import { UsageError } from '../usage.ts'
import { lookForConfig } from './import.ts'

export interface EditConfigOptions extends CommonOptions {
  readonly dryRun?: boolean
}

/** The one file that a command edits. */
export interface ConfigFile {
  readonly path: string
  /** As people write it. */
  readonly named: string
  readonly before: Snapshot
  readonly text: ServersText
  /** Its servers as they are understood. */
  readonly servers: ReadonlyMap<string, Definition>
  /** What is wrong with the whole configuration when this file says `text`. */
  problemsWith(text: string): Promise<readonly ConfigProblem[]>
}

/** The file that was named, else the one that would be loaded, else a new one in this folder. */
export async function openConfig(shell: Shell, { config = [] }: CommonOptions): Promise<ConfigFile> {
  const { env, cwd } = shell
  const [found, ...others] = (await locate(config, env, cwd, homeOf(env))).paths
  if (others.length > 0) {
    throw new UsageError('The configuration is in several files.', 'Name the one to edit with --config, once.')
  }
  const path = found ?? join(cwd, 'toolway.yaml')
  const named = short(path, shell)
  const before = await lookForConfig(path, named)
  const servers = before.bytes ? await readOwn(path, named, shell) : new Map<string, Definition>()
  // A file that was merely found must not be trusted like one that was named.
  const paths = found === undefined ? [path] : config
  return {
    path,
    named,
    before,
    servers,
    text: edited(named, () => serversText(path, before.text)),
    problemsWith: (text) =>
      loadConfig({ paths, env, cwd, drafts: new Map([[path, text]]) }).then(
        () => [],
        (thrown) => {
          if (thrown instanceof ConfigError) return thrown.problems
          throw thrown
        },
      ),
  }
}

/** The servers of a file that has them where we do; how others write theirs is for them to say. */
async function readOwn(path: string, named: string, { env }: Shell): Promise<Map<string, Definition>> {
  const { servers, problems, dialect } = await readServers(path, homeOf(env))
  if (problems.length > 0) throw new ConfigError(problems)
  if (dialect !== 'toolway' && dialect !== 'mcpServers') {
    const kind = kindOf(path)
    throw new UsageError(
      `${named} is written as ${kind ? clientLabels[kind] : dialect} writes it, not as Toolway does.`,
      `\`${spelling(env)} import ${named}\` takes its servers over; name another file with --config.`,
    )
  }
  return new Map(servers.map(({ name, definition }) => [name, definition]))
}

/** Refuses what would be wrong with the configuration afterwards and is not already. */
export async function refuseWorse({ before, problemsWith }: ConfigFile, text: string): Promise<void> {
  const problems = await problemsWith(text)
  if (problems.length === 0) return
  const known = before.bytes ? await problemsWith(before.text) : []
  const same = (a: ConfigProblem, b: ConfigProblem) => a.file === b.file && a.key === b.key && a.message === b.message
  const fresh = problems.filter((problem) => !known.some((other) => same(problem, other)))
  if (fresh.length > 0) throw new ConfigError(fresh)
}

/** Shows the change, without the secrets in the file. */
export function showChange({ before, named, servers }: ConfigFile, after: string, output: Output): void {
  output.print(output.paint('bold', named))
  printDiff(before.text, after, [...servers.values()], output)
}

export const writeConfig = async ({ before }: ConfigFile, after: string): Promise<void> => {
  await replace(before, Buffer.from(before.mark + after))
}

/** Files with secrets that a server referred to and that nobody refers to once it is what `now` says, or gone. */
export function secretsLeft({ servers }: ConfigFile, name: string, now?: Definition): string[] {
  const others = [...servers].filter(([other]) => other !== name)
  const used = new Set(filesIn([now, ...others]))
  return filesIn(servers.get(name)).filter((path) => !used.has(path))
}

/** Whoever serves it watches it. */
export const takenOver = 'A gateway that serves it takes that over by itself.'
