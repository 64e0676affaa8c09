import { existsSync, readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import type { Tool } from '../define-tool.ts'
import type { Sink } from '../sinks/sink.ts'
import { builtInNames } from '../tool-source.ts'
import { IsolatedPlugin, type PluginOptions } from './isolated/child-process.ts'
import { type LoadedModule, loadModule, PluginsRefused } from './load-module.ts'
import { writableByOthers } from './writable-by-others.ts'

export { PluginsRefused } from './load-module.ts'

/** The loaded plugins. Disposing them ends their child processes. */
export interface Plugins extends AsyncDisposable {
  readonly tools: readonly Tool[]
  readonly sinks: readonly Sink[]
  /** Every file that the plugins consist of, to watch for changes. */
  readonly filesToWatch: readonly string[]
}

/**
 * Loads the modules and folders listed in `native.plugins` (S2). Loads all or none: if any of them cannot be loaded,
 * throws `PluginsRefused` with all problems. A module whose files have changed is reloaded.
 */
export async function loadPlugins(paths: readonly string[], options: PluginOptions): Promise<Plugins> {
  const problems: string[] = []
  const modules: LoadedModule[] = []
  for (const path of paths) {
    const found = findModules(path)
    if ('problem' in found) problems.push(found.problem)
    // Load modules one by one: a module may need what an earlier one sets up.
    else for (const file of found.files) modules.push(await loadModule(file, options))
  }
  problems.push(...modules.flatMap(({ problem }) => problem ?? []), ...namedTwice(modules))
  if (problems.length > 0) throw new PluginsRefused(problems)

  await using children = new AsyncDisposableStack()
  const tools = modules.flatMap((module) => inProcessOrChild(module, options, children))
  const kept = children.move()
  return {
    tools,
    sinks: modules.flatMap(({ sinks }) => sinks),
    filesToWatch: [...new Set([...paths, ...modules.flatMap(({ files }) => files)])],
    [Symbol.asyncDispose]: () => kept.disposeAsync(),
  }
}

/** A module's tools. Isolated tools in the same module share one child process. */
function inProcessOrChild(
  { file, tools }: LoadedModule,
  options: PluginOptions,
  children: AsyncDisposableStack,
): Tool[] {
  const isolated = tools.flatMap((tool) => tool.isolated ?? [])
  if (isolated.length === 0) return [...tools]
  const variables = isolated.flatMap((wish) => (wish === true ? [] : wish.env))
  const child = children.use(new IsolatedPlugin({ ...options, file, variables }))
  return tools.map((tool) => (tool.isolated ? { ...tool, run: (call) => child.run(tool.name, call) } : tool))
}

function namedTwice(modules: readonly LoadedModule[]): string[] {
  const owners = new Map(builtInNames.map((name) => [`tool ${name}`, 'Toolway']))
  const problems: string[] = []
  for (const { file, tools, sinks } of modules) {
    const names = [...tools.map(({ name }) => `tool ${name}`), ...sinks.map(({ name }) => `sink ${name}`)]
    for (const name of names) {
      const owner = owners.get(name)
      if (owner !== undefined) problems.push(`Both ${owner} and ${file} define the ${name}; rename one of them.`)
      owners.set(name, file)
    }
  }
  return problems
}

const isModule = (name: string) => /^[^._].*\.[cm]?[jt]s$/.test(name) && !/\.(?:d|test|spec)\.[cm]?[jt]s$/.test(name)
const indexNames = ['index.ts', 'index.mts', 'index.js', 'index.mjs']

/** The modules at a path: the file itself, or the folder's index module, or else each module in the folder. */
function findModules(path: string): { readonly files: readonly string[] } | { readonly problem: string } {
  if (!existsSync(path)) return { problem: `There is no plugin at ${path}; correct native.plugins.` }
  const problem = writableByOthers(path)
  if (problem !== undefined) return { problem: `The plugin ${path} was not loaded: ${problem}` }
  if (!statSync(path).isDirectory()) return { files: [path] }
  const names = readdirSync(path)
  const index = indexNames.find((name) => names.includes(name))
  const files = (index === undefined ? names.filter(isModule).sort() : [index]).map((name) => join(path, name))
  if (files.length === 0) return { problem: `There is no module in the folder ${path}; correct native.plugins.` }
  for (const file of files) {
    const inside = writableByOthers(file)
    if (inside !== undefined) return { problem: `The plugin ${file} was not loaded: ${inside}` }
  }
  return { files }
}
