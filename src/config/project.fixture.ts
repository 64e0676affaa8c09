import { mkdir, mkdtemp, realpath, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { onTestFinished } from 'vitest'
import type { EnvVars } from './interpolate.ts'
import { type LoadedConfig, loadConfig } from './load.ts'
import { ConfigError, type ConfigProblem } from './problems.ts'

export interface Project {
  readonly folder: string
  at(...parts: string[]): string
  load(options?: { paths?: readonly string[]; env?: EnvVars; cwd?: string }): Promise<LoadedConfig>
  /** The problems of a configuration that must not load. */
  problems(options?: { paths?: readonly string[]; env?: EnvVars }): Promise<readonly ConfigProblem[]>
}

/** A temporary folder with these files, removed after the test. Its home folder is `home` inside it. */
export async function project(files: Readonly<Record<string, string | Buffer>> = {}): Promise<Project> {
  const folder = await realpath(await mkdtemp(join(tmpdir(), 'toolway-config-')))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  for (const [name, content] of Object.entries(files)) {
    await mkdir(dirname(join(folder, name)), { recursive: true })
    await writeFile(join(folder, name), content)
  }
  const load: Project['load'] = ({ paths = [], env = {}, cwd = folder } = {}) =>
    loadConfig({ paths, env: { HOME: join(folder, 'home'), ...env }, cwd })
  return {
    folder,
    at: (...parts) => join(folder, ...parts),
    load,
    async problems(options) {
      try {
        await load(options)
      } catch (thrown) {
        if (thrown instanceof ConfigError) return thrown.problems
        throw thrown
      }
      throw new Error('the configuration loaded although it must not')
    },
  }
}

/** `line:column key: message`, which is how the tests state what they expect. */
export const brief = (problems: readonly ConfigProblem[]): string[] =>
  problems.map(({ line, column, key, message }) => `${line}:${column} ${key}: ${message}`)
