import { constants } from 'node:fs'
import { access } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { contentOf } from '../../config/edit/edit-text.ts'
import { type FileSnapshot, readSnapshot } from '../../config/edit/file.ts'
import { clientLabels, kindOf } from '../../config/import/client-kind.ts'
import { readServers } from '../../config/import/read-servers.ts'
import type { EnvVars, NewReference } from '../../config/interpolate.ts'
import { type LoadedConfig, loadConfig } from '../../config/load.ts'
import { type ConfigSource, locate } from '../../config/locate.ts'
import { parseDocument } from '../../config/parse/document.ts'
import { ConfigError, type ConfigProblem } from '../../config/problems.ts'
import { homeOf } from '../../core/home.ts'

export interface EditedFile {
  readonly path: string
  readonly before: FileSnapshot
  /** Why it cannot be edited here, such as a syntax error; undefined if it can. */
  readonly obstacle: string | undefined
  /** Loads the whole configuration with `text` as the content of this file. */
  load(text: string): Promise<Draft>
}

/** Opens the file to edit: the one that is named or would be loaded or, if there is none, a new one in this folder. */
export async function openEditedFile(source: ConfigSource): Promise<EditedFile> {
  const { paths: named, env, cwd } = source
  const { paths, problems } = await locate(named, env, cwd)
  if (problems.length > 0) throw new ConfigError(problems)
  const path = paths[0] ?? join(cwd, 'toolway.yaml')
  const before = await readSnapshot(path, 0o644)
  // Pass only paths that the user named: files that are found automatically are trusted less.
  const own = paths.length === 0 ? [path] : named
  return {
    path,
    before,
    obstacle:
      paths.length > 1 ? severalFiles(paths) : ((await obstacleTo(before, env)) ?? (await syntaxErrorIn(before))),
    load: (text) => loadDraft({ ...source, paths: own }, path, text),
  }
}

const severalFiles = (paths: readonly string[]): string =>
  `The configuration is merged from several files (${paths.join(', ')}). Edit the right file by hand.`

async function syntaxErrorIn({ path, text }: FileSnapshot): Promise<string | undefined> {
  try {
    contentOf(path, text)
    return undefined
  } catch {
    const [problem] = (await parseDocument({ path, text })).problems
    const place = problem?.line === undefined ? path : `${path}, line ${problem.line},`
    return `${place} has a syntax error (${problem?.message ?? 'it cannot be parsed'}). Fix it with a text editor.`
  }
}

async function obstacleTo({ path, target, bytes }: FileSnapshot, env: EnvVars): Promise<string | undefined> {
  if (bytes) {
    const { dialect = 'toolway' } = await readServers(path, homeOf(env))
    if (dialect !== 'toolway' && dialect !== 'mcpServers') {
      const kind = kindOf(path)
      return `${path} is in the ${kind ? clientLabels[kind] : dialect} format, not in Toolway's own. Import its servers with \`toolway import\`.`
    }
  }
  // The file is replaced by a new one, so its folder must be writable too.
  try {
    if (bytes) await access(target, constants.W_OK)
    await access(dirname(target), constants.W_OK)
    return undefined
  } catch (thrown) {
    const { code = 'unknown' } = thrown as NodeJS.ErrnoException
    return `${path} cannot be written (${code}): it is read-only or managed elsewhere. Edit it at its source.`
  }
}

export interface Draft {
  readonly loaded?: LoadedConfig
  readonly problems: readonly ConfigProblem[]
  readonly newReferences: readonly NewReference[]
}

/**
 * Loads the configuration with `text` instead of the content of the file at `path`. Commands in `${exec:COMMAND}` run
 * only if the configuration on disk contains them: the draft may come from a cloned repository.
 */
export async function loadDraft({ paths, env, cwd }: ConfigSource, path: string, text: string): Promise<Draft> {
  const newReferences: NewReference[] = []
  const drafts = new Map([[path, text]])
  try {
    const loaded = await loadConfig({ paths, env, cwd, drafts, onNewReference: (one) => newReferences.push(one) })
    return { loaded, problems: [], newReferences }
  } catch (thrown) {
    if (thrown instanceof ConfigError) return { problems: thrown.problems, newReferences }
    throw thrown
  }
}

export function newProblems(before: readonly ConfigProblem[], after: readonly ConfigProblem[]): ConfigProblem[] {
  const same = (a: ConfigProblem, b: ConfigProblem) => a.file === b.file && a.key === b.key && a.message === b.message
  return after.filter((problem) => !before.some((other) => same(problem, other)))
}
