import { stat } from 'node:fs/promises'
import type { Config } from '../config/schema.ts'
import { FileWatch } from '../config/watch.ts'
import type { Entry } from '../core/entry.ts'
import { metaSource, type Source, skillsSource } from '../core/source.ts'
import type { ResultLimits } from '../pipeline/results/limit-results.ts'
import { describeProblems } from '../policy/arguments/problems.ts'
import type { SchemaChecker } from '../policy/arguments/validate.ts'
import type { Policy } from '../policy/decide.ts'
import { vetUrl } from '../policy/guards/url.ts'
import { likelyLanguages } from '../sandbox/runtime.ts'
import { executeCode } from '../tools/code/execute-code.ts'
import type { Tool } from '../tools/define-tool.ts'
import { inferenceTools } from '../tools/inference/index.ts'
import type { AnswerParser } from '../tools/inference/models.ts'
import { type MetaToolsOptions, metaResources, metaTools, type ResultReader } from '../tools/meta/index.ts'
import { nativeTools } from '../tools/native/index.ts'
import { loadPlugins, type Plugins, PluginsRefused } from '../tools/plugins/index.ts'
import { createSinks } from '../tools/sinks/index.ts'
import { LocalSkills } from '../tools/skills/local-skills.ts'
import { toolSource } from '../tools/tool-source.ts'
import type { Engines } from './engines.ts'
import type { SharedParts } from './generations.ts'
import { moduleFile } from './package-paths.ts'
import type { GenerationContext, ProcessState } from './process-state.ts'

export interface LocalSourcesOptions {
  readonly config: Config
  readonly policy: Policy
  readonly engines: Engines
  readonly plugins: Plugins
  /** The limits for results; undefined if there are none. */
  readonly limits: ResultLimits | undefined
  readonly skills: LocalSkills | undefined
}

/** What runs in the gateway: meta-tools, native tools (also from plugins and the embedding program), sinks, skills. */
export function createLocalSources(options: LocalSourcesOptions, context: GenerationContext): readonly Source[] {
  const { config, policy, plugins, skills } = options
  const { access, clock, log, print, ttlStore, seal } = context
  const shared = ttlStore && { ttlStore, seal }
  const source = (name: string, description: string, tools: readonly Tool[], resources: readonly Entry[] = []) =>
    toolSource({ name, description, tools, resources, origin: 'native', timeoutMs: config.defaults.timeout, clock })
  const results = options.limits && resultReader(options, options.limits, context)
  const { learning } = context
  const searched: MetaToolsOptions['searched'] = config.search.learn
    ? (caller, query, found) => learning.searched(caller, query, found)
    : undefined
  const meta = { access, asAgent: policy.actAs, status: context.status, results, searched, clock }
  const native = [...builtInTools(options, context), ...plugins.tools, ...context.tools]
  const sinks = createSinks({ sinks: config.sinks, custom: plugins.sinks, access, shared, clock, log, stdout: print })
  return [
    source(metaSource, 'Finds and runs tools on all servers', metaTools(meta), metaResources(meta)),
    source('native', 'Tools built into Toolway', native),
    ...(sinks.length > 0 ? [source('sink', "Destinations for agents' output", sinks)] : []),
    ...(skills ? [skills] : []),
  ]
}

const resultReader = (
  { config, policy }: LocalSourcesOptions,
  limits: ResultLimits,
  { results: store }: GenerationContext,
): ResultReader => ({
  store,
  keepMs: config.results.keep,
  decide: policy.decide,
  maxTokens: (caller, entry) => limits.of({ caller, entry }),
  compilePattern: async (source) => (await import('../policy/arguments/patterns.ts')).searchPattern(source),
})

/** The skills in the configured folders; undefined without folders. */
export function shareSkills(
  { skills: { folders } }: Config,
  { servedUris, clock, log }: Pick<GenerationContext, 'servedUris' | 'clock' | 'log'>,
  parts: SharedParts,
  before: SharedParts | undefined,
): LocalSkills | undefined {
  if (folders.length === 0) return undefined
  const watch = (files: readonly string[], changed: () => void) => new FileWatch(files, clock, changed)
  return parts.share(before, skillsSource, folders, () => new LocalSkills({ folders, watch, servedUris, clock, log }))
}

function builtInTools(
  { config, engines }: LocalSourcesOptions,
  { access, leases, clock, log }: GenerationContext,
): Tool[] {
  const { tools: names, fetch } = config.native
  const vet = (url: string) => vetUrl(url, { allowPrivate: fetch.allowPrivate, clock })
  const models = engines.models.byName
  const languages = likelyLanguages(config.sandbox.languages)
  const sandbox = { ...config.sandbox, languages: [...languages] }
  const others = inferenceTools({ config, models, parser: answerParser, vet, clock, log })
  const code = { executor: engines.executor, access, config: sandbox, claim: leases?.acquire, clock }
  if (languages.length > 0) others.push(executeCode(code))
  return nativeTools({ names, fetch: { vet, config: fetch }, others, clock })
}

/**
 * Parses JSON that a model wrote, repairs it where possible, and validates it against the requested schema. An
 * incomplete or ambiguous answer is a problem: its values may be cut off.
 */
export async function answerParser(schema: Readonly<Record<string, unknown>>): Promise<AnswerParser> {
  // Load the modules on demand, because few gateways ask a model for JSON.
  const { repair } = await import('../chat/repair/repair.ts')
  const { openChecker } = await import('../policy/arguments/validate.ts')
  const checker = await openChecker(schema)
  if ('unfit' in checker) return checker
  return {
    read(text, restore, ended) {
      const found = repair(text, { accepts: () => true })
      if ('unreadable' in found) return { problem: found.unreadable }
      if (!found.complete && (!ended || found.lacks === 'more')) return { problem: 'was cut off' }
      if (found.ambiguous !== undefined) return { problem: found.ambiguous }
      const value = restore(found.value)
      const problem = answerMismatch(checker, value)
      return problem === undefined ? { value } : { problem: `does not match the schema: ${problem}` }
    },
  }
}

function answerMismatch(checker: SchemaChecker, value: unknown): string | undefined {
  try {
    return checker.accepts(value) ? undefined : describeProblems(checker.allProblems(value))
  } catch {
    return 'it is too complex to check'
  }
}

interface PluginContext extends Pick<ProcessState, 'clock' | 'log'>, Partial<Pick<ProcessState, 'orphanReaper'>> {
  /** Removes the configuration's secrets, which a plugin may put into its error, from text. */
  conceal(text: string): string
}

/** Loads plugins. Throws `PluginsRefused` if one cannot be loaded. */
export async function openPlugins(paths: readonly string[], context: PluginContext): Promise<Plugins> {
  const { orphanReaper, conceal, clock, log } = context
  const modules = { library: moduleFile('tools/plugins/library'), child: moduleFile('tools/plugins/isolated/child') }
  try {
    return await loadPlugins(paths, { modules, registerProcess: orphanReaper?.register, clock, log })
  } catch (thrown) {
    throw thrown instanceof PluginsRefused ? new PluginsRefused(thrown.problems.map(conceal)) : thrown
  }
}

/** Reuses plugins unless their list or one of their files has changed. */
export async function sharePlugins(
  paths: readonly string[],
  context: PluginContext,
  parts: SharedParts,
  before: { readonly plugins: Plugins; readonly parts: SharedParts } | undefined,
): Promise<Plugins> {
  const same = before && parts.reuse<Plugins>(before.parts, 'plugins', await stateOfPlugins(paths, before.plugins))
  if (same) return same
  const plugins = await openPlugins(paths, context)
  return parts.add('plugins', await stateOfPlugins(paths, plugins), plugins)
}

/** The list of plugins and the metadata of their files, compared to detect changes. */
async function stateOfPlugins(paths: readonly string[], { filesToWatch }: Plugins): Promise<unknown> {
  const files = await Promise.all(filesToWatch.map((place) => stat(place).catch(() => undefined)))
  return [paths, files.map((file) => file && [file.mtimeMs, file.size, file.ino])]
}
