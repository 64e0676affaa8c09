import { createReadStream } from 'node:fs'
import { lstat, stat } from 'node:fs/promises'
import { delimiter, dirname, join, resolve } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { configHome } from '../core/home.ts'
import type { EnvVars } from './interpolate.ts'
import { type ConfigProblem, fileProblem } from './problems.ts'
import type { SourceFile } from './tree.ts'

/** Where a gateway's configuration comes from. */
export interface ConfigSource {
  /** The files that the user named; if empty, the default locations are searched. */
  readonly paths: readonly string[]
  readonly env: EnvVars
  readonly cwd: string
}

interface LocatedConfig {
  readonly paths: readonly string[]
  /** All paths that were searched. A change to any of them may change the configuration. */
  readonly filesToWatch: readonly string[]
  readonly warnings: readonly string[]
  /** Why the file that was found must not be used; empty if it may be. */
  readonly problems: readonly ConfigProblem[]
}

const ownNames = ['yaml', 'yml', 'json', 'jsonc', 'toml'].map((extension) => `toolway.${extension}`)

/**
 * Finds the configuration files to read. Uses the first of these that is given or exists: the named files,
 * TOOLWAY_CONFIG, GATEWAY_MCP_CONFIG, a file in the current folder, a file in the user's configuration folder. If there
 * is none, no file is read and the defaults apply.
 */
export async function locate(named: readonly string[], env: EnvVars, cwd: string): Promise<LocatedConfig> {
  const all = (names: readonly string[]): LocatedConfig => {
    const paths = names.map((path) => resolve(cwd, path))
    return { paths, filesToWatch: paths, warnings: [], problems: [] }
  }
  if (named.length > 0) return all(named)
  if (env.TOOLWAY_CONFIG) return all(env.TOOLWAY_CONFIG.split(delimiter).filter((path) => path !== ''))
  if (env.GATEWAY_MCP_CONFIG) return all([env.GATEWAY_MCP_CONFIG])
  const userFolder = join(configHome(env), 'toolway')
  const groups = [
    ownNames.map((name) => join(cwd, name)),
    [join(cwd, '.mcp.json')],
    ownNames.map((name) => join(userFolder, name)),
  ]
  const filesToWatch = groups.flat()
  for (const group of groups) {
    const found = await existing(group)
    const [first, ...others] = found
    if (first === undefined) continue
    const problems = await ownershipProblems(first, env)
    if (problems.length > 0) return { paths: [], filesToWatch, warnings: [], problems }
    const warnings = others.map(
      (path) => `${path} is not read because ${first} takes precedence; pass both with --config to merge them`,
    )
    return { paths: [first], filesToWatch, warnings, problems: [] }
  }
  return { paths: [], filesToWatch, warnings: [], problems: [] }
}

/**
 * Checks a file that was not named, because its commands run as this user. Returns a problem if another user put the
 * file, or a link to it, into a folder such as /tmp, where everyone can create files.
 */
export async function ownershipProblems(path: string, { SUDO_UID }: EnvVars): Promise<ConfigProblem[]> {
  const user = process.geteuid?.()
  if (user === undefined) return []
  // With sudo, the files of the user who called it are trusted as well.
  const trusted = [0, user, ...(user === 0 && SUDO_UID ? [Number(SUDO_UID)] : [])]
  const [folder, ...files] = await Promise.all([stat(dirname(path)), lstat(path), stat(path)]).catch(() => [])
  if (folder === undefined || (folder.mode & 0o002) === 0) return []
  if (files.every(({ uid }) => trusted.includes(uid))) return []
  const message =
    'this file was found automatically in a folder that all users can write to, and it belongs to another user; ' +
    'check its contents, then name it with --config to use it'
  return [fileProblem(path, message)]
}

async function existing(paths: readonly string[]): Promise<string[]> {
  const found = await Promise.all(paths.map(isFile))
  return paths.filter((_, index) => found[index])
}

/** Whether a file exists. An inaccessible file counts as existing, so that the attempt to read it reports an error. */
export async function isFile(path: string): Promise<boolean> {
  try {
    return !(await stat(path)).isDirectory()
  } catch (thrown) {
    const code = (thrown as NodeJS.ErrnoException).code
    return code !== 'ENOENT' && code !== 'ENOTDIR'
  }
}

/** Maximum size of a configuration file; far larger than any real one. */
const maxBytes = 8 * 1024 * 1024

const reasons: Readonly<Record<string, string>> = {
  ENOENT: 'no such file',
  EACCES: 'this file cannot be read: permission denied',
  EPERM: 'this file cannot be read: permission denied',
  EISDIR: 'this is a folder; specify a file in it',
  ENOTDIR: 'no such file',
  ELOOP: 'this symbolic link points to itself',
}

export async function readSource(path: string): Promise<SourceFile | ConfigProblem> {
  try {
    const facts = await stat(path)
    if (facts.isDirectory()) return fileProblem(path, reasons.EISDIR as string)
    if (facts.isFIFO() && !isInherited(path)) return fileProblem(path, namedPipe)
    if (facts.size > maxBytes) return tooLarge(path)
    // Limit the read as well, because a device has no reported size and may be endless.
    const bytes = await buffer(createReadStream(path, { end: maxBytes }))
    return bytes.length > maxBytes ? tooLarge(path) : decode(path, bytes)
  } catch (thrown) {
    const code = (thrown as NodeJS.ErrnoException).code ?? ''
    return fileProblem(path, reasons[code] ?? `this file cannot be read: ${code}`)
  }
}

const namedPipe = 'this is a named pipe, which may have no writer; specify a regular file, /dev/stdin or <(COMMAND)'

/** Whether a path names an open file of this process, as /dev/stdin and the shell's <(COMMAND) do. */
const isInherited = (path: string): boolean => /^\/(?:dev\/stdin$|dev\/fd\/|proc\/\w+\/fd\/)/.test(path)

const tooLarge = (path: string) => fileProblem(path, `this file is larger than ${maxBytes / 1024 ** 2} MiB`)

function decode(path: string, bytes: Buffer): SourceFile | ConfigProblem {
  try {
    // The decoder removes a byte order mark.
    return { path, text: new TextDecoder('utf-8', { fatal: true }).decode(bytes) }
  } catch {
    return fileProblem(path, 'this file is not UTF-8 text; save it as UTF-8')
  }
}
