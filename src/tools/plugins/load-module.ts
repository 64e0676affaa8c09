import { statSync } from 'node:fs'
import { createRequire, registerHooks } from 'node:module'
import { fileURLToPath, pathToFileURL } from 'node:url'
import type { Clock } from '../../core/clock.ts'
import { deadline, endWith } from '../../core/deadline.ts'
import { ToolwayError } from '../../core/errors.ts'
import { isRecord } from '../../lib/is-record.ts'
import { thrownText } from '../../lib/message-text.ts'
import type { Tool } from '../define-tool.ts'
import { isSink, type Sink } from '../sinks/sink.ts'
import { writableByOthers } from './writable-by-others.ts'

export interface LoadedModule {
  readonly file: string
  readonly tools: readonly Tool[]
  readonly sinks: readonly Sink[]
  readonly files: readonly string[]
  readonly problem?: string
}

interface LoadModuleOptions {
  readonly modules: { readonly library: URL }
  readonly clock: Clock
  load?(url: string): Promise<Record<string, unknown>>
}

/** Max time to load a module. Without it, a top-level await could block the configuration forever. */
const maxLoadMs = 10_000

/** Loads one module and checks its exports. Returns problems instead of throwing. */
export async function loadModule(file: string, options: LoadModuleOptions): Promise<LoadedModule> {
  const { modules, clock, load = (url) => import(url) } = options
  registerPluginHooks(modules.library)
  const imported = importedModule(file)
  const tooLate = () => new Error(`it did not load within ${maxLoadMs / 1000} s (a fixed limit)`)
  using limit = deadline(clock, maxLoadMs, tooLate)
  try {
    const url = withTag(pathToFileURL(file).href, imported.tag)
    const { problem, ...offered } = exportedBy(await endWith(limit.signal, load(url)))
    const told = problem && `${file} ${problem}; export the results of defineTool or defineSink.`
    return { file, ...offered, files: [...imported.files], problem: told }
  } catch (thrown) {
    return { file, tools: [], sinks: [], files: [...imported.files], problem: loadProblem(file, thrown) }
  } finally {
    imported.marks = fileMarks(imported.files)
  }
}

/** The tools and sinks that a module exports, single or in arrays, under any name. Ignores other exports. */
function exportedBy(module: Readonly<Record<string, unknown>>): Pick<LoadedModule, 'tools' | 'sinks' | 'problem'> {
  const refused = (problem: string) => ({ tools: [], sinks: [], problem })
  const found = new Set<unknown>()
  for (const [name, value] of Object.entries(namedExports(module))) {
    const all = Array.isArray(value) ? value : [value]
    const wrong = all.map(wrongness).find((problem) => problem !== undefined)
    if (wrong !== undefined) return refused(`exports "${name}", which ${wrong}`)
    const fits = all.filter((one) => isToolExport(one) || isSink(one))
    if (name === 'default' && (fits.length < all.length || fits.length === 0))
      return refused('has a default export that is not a tool, a sink or a list of tools and sinks')
    for (const one of fits) found.add(one)
  }
  if (found.size === 0) return refused('exports neither tools nor sinks')
  return { tools: [...found].filter(isToolExport), sinks: [...found].filter(isSink) }
}

/** The exports of a module; of a CommonJS module, those in `module.exports`, which Node.js makes its default export. */
function namedExports(module: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  const exported = module['module.exports']
  return isRecord(exported) && !isToolExport(exported) && !isSink(exported) ? exported : module
}

const isToolExport = (value: unknown): value is Tool =>
  isRecord(value) && typeof value.run === 'function' && isRecord(value.definition) && typeof value.name === 'string'

/** Detects an object that was meant to be a tool or a sink but was not made by `defineTool` or `defineSink`. */
function wrongness(value: unknown): string | undefined {
  if (!isRecord(value) || isToolExport(value) || isSink(value) || typeof value.name !== 'string') return undefined
  if (typeof value.run === 'function') return 'looks like a tool that was not created with defineTool'
  return typeof value.write === 'function' ? 'looks like a sink that was not created with defineSink' : undefined
}

/** Thrown if some plugins cannot be loaded. The whole configuration is then rejected, not applied in part. */
export class PluginsRefused extends ToolwayError {
  /** One message per problem. It names the file and says what is wrong and what to do. */
  readonly problems: readonly string[]

  constructor(problems: readonly string[]) {
    super('INTERNAL', problems.join(' '))
    this.problems = problems
  }
}

function loadProblem(file: string, thrown: unknown): string {
  if (thrown instanceof Untrusted) return thrown.message
  const error: NodeJS.ErrnoException = thrown instanceof Error ? thrown : new Error(thrownText(thrown))
  const { code, name, message, stack = '' } = error
  const detail = message
    .replace(/\?toolway-plugin=[\w-]+/g, '')
    .replace(/\s+/g, ' ')
    .trim()
    .slice(0, 300)
    .replace(/\.$/, '')
  if (code === 'ERR_UNSUPPORTED_TYPESCRIPT_SYNTAX') {
    return `${file} uses TypeScript syntax that cannot be removed as types (${detail}); do not use enums, namespaces or parameter properties.`
  }
  if (code === 'ERR_MODULE_NOT_FOUND' || code === 'MODULE_NOT_FOUND') {
    return `${file} has an import that cannot be resolved: ${detail}. Install it next to the plugin, or correct the import.`
  }
  if (name === 'SyntaxError' || code === 'ERR_INVALID_TYPESCRIPT_SYNTAX') {
    const line = /\?toolway-plugin=[\w-]+:(\d+)/.exec(stack)?.[1]
    return `${file} cannot be loaded${line === undefined ? '' : ` (line ${line})`}: ${detail}. Correct the file.`
  }
  return `${file} failed to load: ${detail}. Fix it, or remove it from native.plugins.`
}

/** A file that other users could change. */
class Untrusted extends Error {}

/** A module as Node.js has loaded it. A new tag makes Node.js load the file again, as a new module. */
interface ImportedModule {
  readonly tag: string
  /** The file of the module, and the files beside it that it imports. */
  readonly files: Set<string>
  /** A fingerprint of all files. */
  marks: string
}

const tagParameter = 'toolway-plugin'
const ownRequire = createRequire(import.meta.url)

/** The loaded plugins by file. Never shrinks, because Node.js keeps loaded modules for the lifetime of the process. */
const importedModules = new Map<string, ImportedModule>()
let tagCount = 0
let isRegistered = false

/** The module of a file; a new one if any of its files has changed. */
function importedModule(file: string): ImportedModule {
  const before = importedModules.get(file)
  if (before && before.marks === fileMarks(before.files)) return before
  // Node.js keeps CommonJS modules by their path, without the tag.
  for (const each of before?.files ?? []) delete ownRequire.cache[each]
  const imported = { tag: `${++tagCount}`, files: new Set([file]), marks: '' }
  importedModules.set(file, imported)
  return imported
}

const moduleTagged = (tag: string): ImportedModule | undefined =>
  [...importedModules.values()].find((imported) => imported.tag === tag)

/**
 * Registers hooks for importing plugins, which may be in any folder. `toolway` and `zod` resolve to Toolway's own
 * copies, so that there is only one copy of each. Modules that plugins import by path get the same tag and the same
 * permission check.
 */
function registerPluginHooks(library: URL): void {
  if (isRegistered) return
  isRegistered = true
  registerHooks({
    resolve(specifier, context, next) {
      const tag = urlTag(context.parentURL) ?? tagOfCommonJs(context.parentURL)
      if (tag === undefined) {
        const found = next(specifier, context)
        const entered = urlTag(found.url)
        // The path without symbolic links, which is how CommonJS modules know themselves.
        if (entered !== undefined) moduleTagged(entered)?.files.add(fileURLToPath(found.url))
        return found
      }
      if (specifier === 'toolway') return { url: library.href, shortCircuit: true }
      if (/^zod(?:\/|$)/.test(specifier)) {
        // For `require`, Node.js ignores another parent.
        if (context.conditions.includes('require'))
          return { url: pathToFileURL(ownRequire.resolve(specifier)).href, shortCircuit: true }
        return next(specifier, { ...context, parentURL: import.meta.url })
      }
      const found = next(specifier, context)
      const isBeside = /^(?:\.{0,2}\/|file:|#)/.test(specifier) && found.url.startsWith('file:')
      if (!isBeside) return found
      const file = fileURLToPath(found.url)
      const problem = writableByOthers(file)
      if (problem !== undefined) throw new Untrusted(`The plugin imports ${file}, which cannot be loaded: ${problem}`)
      moduleTagged(tag)?.files.add(file)
      return { ...found, url: withTag(found.url, tag) }
    },
  })
}

function withTag(href: string, tag: string): string {
  const url = new URL(href)
  url.searchParams.set(tagParameter, tag)
  return url.href
}

const urlTag = (url: string | undefined): string | undefined =>
  url?.includes(`${tagParameter}=`) ? (new URL(url).searchParams.get(tagParameter) ?? undefined) : undefined

/** The tag of a CommonJS module that requires or imports another one: Node.js forgets the parameter of its URL. */
function tagOfCommonJs(parentURL: string | undefined): string | undefined {
  if (!parentURL?.startsWith('file:')) return undefined
  const file = fileURLToPath(parentURL)
  return [...importedModules.values()].find(({ files }) => files.has(file))?.tag
}

const fileMarks = (files: Iterable<string>): string =>
  [...files]
    .map((file) => {
      const facts = statSync(file, { bigint: true, throwIfNoEntry: false })
      return facts ? `${file} ${facts.ino} ${facts.size} ${facts.mtimeNs} ${facts.ctimeNs}` : file
    })
    .join('\n')
