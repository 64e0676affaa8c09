import { stat } from 'node:fs/promises'
import { isDeepStrictEqual } from 'node:util'
import type { Config } from '../config/schema.ts'
import type { Source } from '../core/source.ts'
import { sentenceOf } from '../policy/arguments/problems.ts'
import type { Policy } from '../policy/decide.ts'
import { vetUrl } from '../policy/guards/url.ts'
import { likelyLanguages } from '../sandbox/runtime.ts'
import { executeCode } from '../tools/code/execute-code.ts'
import type { Tool } from '../tools/define.ts'
import { inferenceTools } from '../tools/inference/index.ts'
import { metaTools } from '../tools/meta/index.ts'
import { nativeTools } from '../tools/native/index.ts'
import { loadPlugins, type Plugins } from '../tools/plugins/index.ts'
import { createSinks } from '../tools/sinks/index.ts'
import { toolSource } from '../tools/source.ts'
import type { GenerationContext, Reusable } from './context.ts'
import type { Engines } from './engines.ts'
import { moduleFile } from './package-paths.ts'
import type { ProcessState } from './process-state.ts'

/** What our own tools are made with. */
export interface LocalSourcesOptions {
  readonly config: Config
  readonly policy: Policy
  readonly engines: Engines
  readonly plugins: Plugins
}

/** The sources of what is not forwarded: meta-tools, native tools and those of plugins and programs, sinks. */
export function createLocalSources(parts: LocalSourcesOptions, context: GenerationContext): readonly Source[] {
  const { config, policy, plugins } = parts
  const { access, clock, log, print } = context
  const source = (name: string, description: string, tools: readonly Tool[]) =>
    toolSource({ name, description, tools, origin: 'native', timeoutMs: config.defaults.timeout, clock })
  const meta = metaTools({ access, asAgent: policy.actAs, status: context.status, clock })
  const native = [...builtInTools(parts, context), ...plugins.tools, ...context.tools]
  const sinks = createSinks({
    sinks: config.sinks,
    custom: plugins.sinks,
    access,
    clock,
    log,
    ...(print && { stdout: print }),
  })
  return [
    source('toolway', 'Finds and runs the tools of every server', meta),
    source('native', 'Tools built into Toolway', native),
    ...(sinks.length > 0 ? [source('sink', 'Places for what agents produce', sinks)] : []),
  ]
}

function builtInTools(
  { config, engines }: LocalSourcesOptions,
  { access, leases, clock, log }: GenerationContext,
): Tool[] {
  const { tools: names, fetch } = config.native
  const vet = (url: string) => vetUrl(url, { allowPrivate: fetch.allowPrivate, clock })
  const models = engines.models.value.byName
  const languages = likelyLanguages(config.sandbox.languages)
  const sandbox = { ...config.sandbox, languages: [...languages] }
  const claiming = leases ? { claim: leases.acquire } : {}
  const others = [
    ...inferenceTools({ config, models, read: parseModelAnswer, vet, clock, log }),
    ...(languages.length > 0
      ? [executeCode({ executor: engines.executor.value, access, config: sandbox, ...claiming, clock })]
      : []),
  ]
  return nativeTools({ names, fetch: { vet, config: fetch }, others, clock })
}

type ParsedAnswer = { readonly value: unknown } | { readonly problem: string }

/** Makes a value of what a model wrote, mended where that is possible, and holds it to the schema that was asked for. */
async function parseModelAnswer(
  text: string,
  schema: Readonly<Record<string, unknown>>,
  restore: (value: unknown) => unknown,
): Promise<ParsedAnswer> {
  // Loaded when it is needed: few gateways have a model that is asked for JSON.
  const { repair } = await import('../chat/repair/repair.ts')
  const found = repair(text, { accepts: () => true })
  if ('unreadable' in found) return { problem: found.unreadable }
  const value = restore(found.value)
  const { compile } = await import('../policy/arguments/compile.ts')
  const made = compile(schema)
  // A schema that cannot be checked is no fault of the answer.
  const problems = 'unfit' in made ? [] : made.check(value)
  return problems.length === 0 ? { value } : { problem: `does not fit: ${sentenceOf(problems)}` }
}

/** Loads plugins with what they need of ours; throws `PluginsRefused` where one of them cannot be. */
export function openPlugins(
  paths: readonly string[],
  { clock, log }: Pick<ProcessState, 'clock' | 'log'>,
): Promise<Plugins> {
  const modules = { library: moduleFile('tools/plugins/library'), child: moduleFile('tools/plugins/isolated/child') }
  return loadPlugins(paths, { modules, clock, log })
}

/** Plugins go on where neither their list nor any of their files has changed. */
export async function reuseOrLoadPlugins(
  paths: readonly string[],
  context: Pick<ProcessState, 'clock' | 'log'>,
  known: Reusable<Plugins> | undefined,
): Promise<Reusable<Plugins>> {
  if (known && isDeepStrictEqual(known.builtFrom, await stateOf(paths, known.value.places))) return known
  const value = await openPlugins(paths, context)
  return { value, builtFrom: await stateOf(paths, value.places) }
}

/** What tells one state of files from another. */
async function stateOf(paths: readonly string[], places: readonly string[]): Promise<unknown> {
  const files = await Promise.all(places.map((place) => stat(place).catch(() => undefined)))
  return [paths, files.map((file) => file && [file.mtimeMs, file.size, file.ino])]
}
