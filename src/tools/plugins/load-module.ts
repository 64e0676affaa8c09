import type { Clock } from '../../core/clock.ts'
import { deadline, endWith } from '../../core/deadline.ts'
import { ToolwayError } from '../../core/errors.ts'
import { isRecord } from '../../lib/is-record.ts'
import { thrownText } from '../../lib/message-text.ts'
import type { Tool } from '../define-tool.ts'
import { isSink, type Sink } from '../sinks/sink.ts'
import { filesOf, noteFiles, registerPluginHooks, tagFor, taggedUrl, Untrusted } from './module-hooks.ts'

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
  const tag = tagFor(file)
  const url = taggedUrl(file, tag)
  using limit = deadline(
    clock,
    maxLoadMs,
    () => new Error(`it did not load within ${maxLoadMs / 1000} s (a fixed limit)`),
  )
  try {
    const { problem, ...offered } = exportedBy(await endWith(limit.signal, load(url)))
    const told = problem && `${file} ${problem}; export the results of defineTool or defineSink.`
    return { file, ...offered, files: filesOf(tag), problem: told }
  } catch (thrown) {
    return { file, tools: [], sinks: [], files: filesOf(tag), problem: loadProblem(file, thrown) }
  } finally {
    noteFiles(file)
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
  const { code, name, message, stack } = loadErrorFacts(thrown)
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

function loadErrorFacts(thrown: unknown) {
  if (!(thrown instanceof Error)) return { code: '', name: '', message: thrownText(thrown), stack: '' }
  const { code = '' } = thrown as NodeJS.ErrnoException
  return { code, name: thrown.name, message: thrown.message, stack: thrown.stack ?? '' }
}
