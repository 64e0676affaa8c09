import type { Config } from '../config/schema.ts'
import type { Source } from '../core/source.ts'
import type { Policy } from '../policy/decide.ts'
import { vetUrl } from '../policy/guards/url.ts'
import { likelyLanguages } from '../sandbox/likely-languages.ts'
import { executeCode } from '../tools/code/execute-code.ts'
import type { Tool } from '../tools/define.ts'
import { inferenceTools } from '../tools/inference/index.ts'
import { metaTools } from '../tools/meta/index.ts'
import { nativeTools } from '../tools/native/index.ts'
import type { Plugins } from '../tools/plugins/index.ts'
import { createSinks } from '../tools/sinks/index.ts'
import { toolSource } from '../tools/source.ts'
import type { Engines } from './engines.ts'
import { readAnswer } from './read-answer.ts'
import type { Surroundings } from './surroundings.ts'

/** What our own tools are made with. */
export interface OwnParts {
  readonly config: Config
  readonly policy: Policy
  readonly engines: Engines
  readonly plugins: Plugins
}

/** The sources of what is not forwarded: meta-tools, native tools and those of plugins and programs, sinks. */
export function ownSources(parts: OwnParts, surroundings: Surroundings): readonly Source[] {
  const { config, policy, plugins } = parts
  const { access, clock, log, print } = surroundings
  const source = (name: string, description: string, tools: readonly Tool[]) =>
    toolSource({ name, description, tools, origin: 'native', timeoutMs: config.defaults.timeout, clock })
  const meta = metaTools({ access, asAgent: policy.actAs, status: surroundings.status, clock })
  const native = [...builtIn(parts, surroundings), ...plugins.tools, ...surroundings.tools]
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

function builtIn({ config, engines }: OwnParts, { access, claims, clock, log }: Surroundings): Tool[] {
  const { tools: names, fetch } = config.native
  const vet = (url: string) => vetUrl(url, { allowPrivate: fetch.allowPrivate, clock })
  const models = engines.models.value.byName
  const languages = likelyLanguages(config.sandbox.languages)
  const sandbox = { ...config.sandbox, languages: [...languages] }
  const claiming = claims ? { claim: claims.acquire } : {}
  const others = [
    ...inferenceTools({ config, models, read: readAnswer, vet, clock, log }),
    ...(languages.length > 0
      ? [executeCode({ executor: engines.executor.value, access, config: sandbox, ...claiming, clock })]
      : []),
  ]
  return nativeTools({ names, fetch: { vet, config: fetch }, others, clock })
}
