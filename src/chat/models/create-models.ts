import type { Config } from '../../config/schema.ts'
import type { Clock } from '../../core/clock.ts'
import type { Budget } from '../../core/limits/budget.ts'
import type { Log } from '../../core/log.ts'
import { createLazy } from '../../lib/memoize.ts'
import type { Model } from './model.ts'
import type { createProfiles } from './server-profile.ts'

type ConfiguredModel = Config['models'][string]

export interface CreateModelsOptions {
  /** The requests to models that run in this process, running and waiting. */
  readonly requests?: Budget
  readonly clock: Clock
  readonly log: Log
  /** What Toolway has learned about model servers. It is shared, so that it outlives a reload. */
  readonly profiles?: ReturnType<typeof createProfiles>
  gguf?(name: string, config: Extract<ConfiguredModel, { kind: 'gguf' }>): Promise<Model>
}

/** The enabled models by name, in configuration order. Nothing is loaded or connected yet. */
export function createModels(config: Config['models'], options: CreateModelsOptions): ReadonlyMap<string, Model> {
  const { clock, log, profiles, requests, gguf = embedded } = options
  const made = Object.entries(config).filter(([, { disabled }]) => !disabled)
  return new Map(made.map(([name, model]) => [name, makeModel(name, model)]))

  function makeModel(name: string, model: ConfiguredModel): Model {
    if (model.kind === 'gguf') return lazyModel({ name, vision: false }, () => gguf(name, model))
    const profile = profiles?.(model.baseUrl, model.model, model.constraint)
    return lazyModel({ name, vision: model.vision }, async () => {
      // Load the module on demand: many gateways never use a model, and the HTTP client is large.
      const { OpenAIModel } = await import('./openai/openai-model.ts')
      return new OpenAIModel({ name, config: model, profile, clock, log })
    })
  }

  async function embedded(name: string, own: Extract<ConfiguredModel, { kind: 'gguf' }>): Promise<Model> {
    // Load the module on demand: few configurations use a model file, and the module is large.
    const { GgufModel } = await import('./gguf/gguf-model.ts')
    return new GgufModel({ name, config: own, requests, clock, log })
  }
}

/** Creates the model on first use; retries after a failure. */
function lazyModel(facts: Pick<Model, 'name' | 'vision'>, make: () => Promise<Model>): Model {
  const model = createLazy(make)
  return {
    ...facts,
    async *complete(request) {
      yield* (await model.get()).complete(request)
    },
    async [Symbol.asyncDispose]() {
      await (await model.loaded())?.[Symbol.asyncDispose]()
    },
  }
}

/** The configured models, default first. */
export function modelNames(models: ReadonlyMap<string, unknown>, { model }: Pick<Config['chat'], 'model'>) {
  const all = [...models.keys()]
  const first = model ?? all[0]
  return all.toSorted((one, other) => Number(other === first) - Number(one === first))
}

export const visionModels = (models: ReadonlyMap<string, Pick<Model, 'vision'>>): readonly string[] =>
  [...models].filter(([, { vision }]) => vision === true).map(([name]) => name)
