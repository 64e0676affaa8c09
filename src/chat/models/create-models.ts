import type { Config } from '../../config/schema.ts'
import type { Clock } from '../../core/clock.ts'
import type { Log } from '../../core/log.ts'
import type { Model } from './model.ts'
import type { createProfiles } from './server-profile.ts'

type ModelConfig = Config['models'][string]

export interface CreateModelsOptions {
  readonly clock: Clock
  readonly log: Log
  /** What is known of servers; kept by whoever wants it to outlive a configuration. */
  readonly profiles?: ReturnType<typeof createProfiles>
  /** Makes a model of a file. */
  gguf?(name: string, config: Extract<ModelConfig, { kind: 'gguf' }>): Promise<Model>
}

/** The models of a configuration that are not disabled, by name and in its order. Nothing is loaded or connected yet. */
export function createModels(config: Config['models'], options: CreateModelsOptions): ReadonlyMap<string, Model> {
  const { clock, log, profiles } = options
  const gguf = options.gguf ?? embedded
  const made = Object.entries(config).filter(([, { disabled }]) => !disabled)
  return new Map(made.map(([name, model]) => [name, makeModel(name, model)]))

  function makeModel(name: string, model: ModelConfig): Model {
    if (model.kind === 'gguf') return lazyModel(name, () => gguf(name, model))
    const { total, step, chunk } = model.timeouts
    const timeouts = { totalMs: total, stepMs: step, chunkMs: chunk }
    const profile = profiles && { profile: profiles(model.baseUrl, model.model, model.constraint) }
    return lazyModel(name, async () => {
      // Many gateways never ask a model, and a client for HTTP is large.
      const { openaiModel } = await import('./openai/openai-model.ts')
      return openaiModel({ name, config: model, timeouts, ...profile, clock, log })
    })
  }

  async function embedded(name: string, own: Extract<ModelConfig, { kind: 'gguf' }>): Promise<Model> {
    // Most configurations have none, and what runs it is large.
    const { ggufModel } = await import('./gguf/gguf-model.ts')
    return ggufModel({ name, config: own, clock, log })
  }
}

/** A model that is made when it is first asked; one that could not be made is tried again. */
function lazyModel(name: string, make: () => Promise<Model>): Model {
  let making: Promise<Model> | undefined
  const model = (): Promise<Model> => {
    making ??= make().catch((error) => {
      making = undefined
      throw error
    })
    return making
  }
  return {
    name,
    async *complete(request) {
      yield* (await model()).complete(request)
    },
    async [Symbol.asyncDispose]() {
      const made = await making?.catch(() => undefined)
      await made?.[Symbol.asyncDispose]()
    },
  }
}

/** The models that may be asked for; the one that answers by default comes first. */
export function modelNames(
  models: ReadonlyMap<string, unknown>,
  { model }: Pick<Config['chat'], 'model'>,
): readonly string[] {
  const all = [...models.keys()]
  const usual = model ?? all[0]
  return [...all.filter((name) => name === usual), ...all.filter((name) => name !== usual)]
}
