import { createModels } from '../chat/models/create-models.ts'
import type { Model } from '../chat/models/model.ts'
import type { Config } from '../config/schema.ts'
import type { Executor } from '../core/executor.ts'
import { moduleFile } from '../here.ts'
import { lazyExecutor } from './lazy-executor.ts'
import { type Made, takeOver } from './made.ts'
import { sandboxFetch } from './sandbox-fetch.ts'
import type { Surroundings } from './surroundings.ts'

/** What runs models and programs. Each goes on in the next world unless its own part of the configuration changes. */
export interface Engines {
  readonly models: Made<Models>
  readonly executor: Made<Executor>
}

export interface Models extends AsyncDisposable {
  readonly byName: ReadonlyMap<string, Model>
}

export function createEngines(
  config: Config,
  { profiles, clock, log }: Surroundings,
  before: Engines | undefined,
): Engines {
  return {
    models: takeOver(before?.models, config.models, () =>
      openModels(createModels(config.models, { profiles, clock, log })),
    ),
    executor: takeOver(before?.executor, config.sandbox, () => openExecutor(config.sandbox, { clock, log })),
  }
}

const openModels = (byName: ReadonlyMap<string, Model>): Models => ({
  byName,
  async [Symbol.asyncDispose]() {
    await Promise.all([...byName.values()].map((model) => model[Symbol.asyncDispose]()))
  },
})

/** Where programs of agents run, by the configuration. */
export function openExecutor(config: Config['sandbox'], { clock, log }: Pick<Surroundings, 'clock' | 'log'>): Executor {
  const fetch = config.allowNetwork.length > 0 ? { fetch: sandboxFetch(config.allowNetwork, clock) } : {}
  return lazyExecutor(async () => {
    const { createExecutor } = await import('../sandbox/executor.ts')
    return createExecutor({ config, child: moduleFile('sandbox/guest/main'), ...fetch, clock, log })
  })
}
