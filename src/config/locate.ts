import { createReadStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import { delimiter, isAbsolute, join, resolve } from 'node:path'
import { buffer } from 'node:stream/consumers'
import type { EnvVars } from './interpolate.ts'
import { type ConfigProblem, fileProblem } from './problems.ts'
import type { SourceFile } from './tree.ts'

/** Which files make up the configuration. */
interface LocatedConfig {
  readonly paths: readonly string[]
  /** Where it was looked for: what comes to be or changes there may change the configuration. */
  readonly places: readonly string[]
  readonly warnings: readonly string[]
}

const ownNames = ['yaml', 'yml', 'json', 'jsonc', 'toml'].map((extension) => `toolway.${extension}`)

/**
 * Where the configuration is: what was named, else TOOLWAY_CONFIG, else GATEWAY_MCP_CONFIG of an agent gateway, else
 * the first file found in this folder or in the user's configuration folder. Nothing at all means the defaults.
 */
export async function locate(
  named: readonly string[],
  env: EnvVars,
  cwd: string,
  home: string,
): Promise<LocatedConfig> {
  const all = (names: readonly string[]): LocatedConfig => {
    const paths = names.map((path) => resolve(cwd, path))
    return { paths, places: paths, warnings: [] }
  }
  if (named.length > 0) return all(named)
  if (env.TOOLWAY_CONFIG) return all(env.TOOLWAY_CONFIG.split(delimiter).filter((path) => path !== ''))
  if (env.GATEWAY_MCP_CONFIG) return all([env.GATEWAY_MCP_CONFIG])
  const userFolder = join(folder(env.XDG_CONFIG_HOME, join(home, '.config')), 'toolway')
  const groups = [
    ownNames.map((name) => join(cwd, name)),
    [join(cwd, '.mcp.json')],
    ownNames.map((name) => join(userFolder, name)),
  ]
  const places = groups.flat()
  for (const group of groups) {
    const found = await existing(group)
    const [first, ...others] = found
    if (first === undefined) continue
    const warnings = others.map(
      (path) => `${path} is not read because ${first} comes first; name both with --config to merge them`,
    )
    return { paths: [first], places, warnings }
  }
  return { paths: [], places, warnings: [] }
}

/** The folders of the XDG convention count only when they are absolute. */
export const folder = (named: string | undefined, otherwise: string): string =>
  named !== undefined && isAbsolute(named) ? named : otherwise

async function existing(paths: readonly string[]): Promise<string[]> {
  const found = await Promise.all(paths.map(isFile))
  return paths.filter((_, index) => found[index])
}

/** A file that is there but cannot be looked at counts: it is an error, not an absence. */
export async function isFile(path: string): Promise<boolean> {
  try {
    return !(await stat(path)).isDirectory()
  } catch (thrown) {
    const code = (thrown as NodeJS.ErrnoException).code
    return code !== 'ENOENT' && code !== 'ENOTDIR'
  }
}

/** Far above any real configuration: whatever is larger was named by mistake. */
const maxBytes = 8 * 1024 * 1024

const reasons: Readonly<Record<string, string>> = {
  ENOENT: 'no such file',
  EACCES: 'this file cannot be read: permission denied',
  EPERM: 'this file cannot be read: permission denied',
  EISDIR: 'this is a folder; name the file inside it',
  ENOTDIR: 'no such file',
  ELOOP: 'this symbolic link points to itself',
}

/** Reads a configuration file as text, or says why that is impossible. */
export async function readSource(path: string): Promise<SourceFile | ConfigProblem> {
  try {
    const facts = await stat(path)
    if (facts.isDirectory()) return fileProblem(path, reasons.EISDIR as string)
    if (facts.size > maxBytes) return tooLarge(path)
    // A device has no size and may never end.
    const bytes = await buffer(createReadStream(path, { end: maxBytes }))
    return bytes.length > maxBytes ? tooLarge(path) : decode(path, bytes)
  } catch (thrown) {
    const code = (thrown as NodeJS.ErrnoException).code ?? ''
    return fileProblem(path, reasons[code] ?? `this file cannot be read: ${code}`)
  }
}

const tooLarge = (path: string) => fileProblem(path, `this file is larger than ${maxBytes / 1024 ** 2} MiB`)

function decode(path: string, bytes: Buffer): SourceFile | ConfigProblem {
  try {
    // A byte order mark is tolerated: the decoder drops it.
    return { path, text: new TextDecoder('utf-8', { fatal: true }).decode(bytes) }
  } catch {
    return fileProblem(path, 'this file is not UTF-8 text; save it as UTF-8')
  }
}
