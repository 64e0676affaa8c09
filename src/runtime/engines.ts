import { createModels } from '../chat/models/create-models.ts'
import type { Model } from '../chat/models/model.ts'
import type { Config } from '../config/schema.ts'
import type { Clock } from '../core/clock.ts'
import { type Executor, HostRefusal } from '../core/executor.ts'
import { vetUrl } from '../policy/guards/url.ts'
import type { SandboxFetch } from '../sandbox/host-calls.ts'
import { readBody } from '../tools/native/fetch/body.ts'
import { pinned } from '../tools/native/fetch/pinned.ts'
import { type GenerationContext, type Reusable, reuseOrCreate } from './context.ts'
import { moduleFile } from './package-paths.ts'

/** What runs models and programs. Each goes on in the next world unless its own part of the configuration changes. */
export interface Engines {
  readonly models: Reusable<Models>
  readonly executor: Reusable<Executor>
}

export interface Models extends AsyncDisposable {
  readonly byName: ReadonlyMap<string, Model>
}

export function createEngines(
  config: Config,
  { profiles, clock, log }: GenerationContext,
  before: Engines | undefined,
): Engines {
  return {
    models: reuseOrCreate(before?.models, config.models, () =>
      openModels(createModels(config.models, { profiles, clock, log })),
    ),
    executor: reuseOrCreate(before?.executor, config.sandbox, () => openExecutor(config.sandbox, { clock, log })),
  }
}

const openModels = (byName: ReadonlyMap<string, Model>): Models => ({
  byName,
  async [Symbol.asyncDispose]() {
    await Promise.all([...byName.values()].map((model) => model[Symbol.asyncDispose]()))
  },
})

/** Where programs of agents run, by the configuration. */
export function openExecutor(
  config: Config['sandbox'],
  { clock, log }: Pick<GenerationContext, 'clock' | 'log'>,
): Executor {
  const fetch = config.allowNetwork.length > 0 ? { fetch: sandboxFetch(config.allowNetwork, clock) } : {}
  return lazyExecutor(async () => {
    const { createExecutor } = await import('../sandbox/executor.ts')
    return createExecutor({ config, child: moduleFile('sandbox/guest/main'), ...fetch, clock, log })
  })
}

/** An executor that is loaded with the first program: most gateways never run one. */
function lazyExecutor(load: () => Promise<Executor>): Executor {
  let loading: Promise<Executor> | undefined
  const executor = () => {
    loading ??= load()
    return loading
  }
  return {
    probe: async () => (await executor()).probe(),
    run: async (program) => (await executor()).run(program),
    async [Symbol.asyncDispose]() {
      await (await loading)?.[Symbol.asyncDispose]()
    },
  }
}

/** Most of an answer that a program gets. */
const maxBytes = 1024 * 1024

/**
 * Reaches hosts of `sandbox.allowNetwork` on behalf of programs. A host that the operator names may be a private one; one
 * that only a pattern fits may not, since anybody can give a name of theirs an address of ours.
 */
const sandboxFetch =
  (allowed: readonly string[], clock: Clock): SandboxFetch =>
  async ({ url: asked, method, headers, body }, signal) => {
    const allowPrivate = allowed.includes(new URL(asked).hostname)
    const { url, addresses } = await vetUrl(asked, { allowPrivate, clock }).catch((thrown: Error) => {
      throw new HostRefusal('UNSAFE_URL', `The URL ${thrown.message}.`)
    })
    await using client = await pinned(url, addresses)
    try {
      const path = url.pathname + url.search
      const answer = await client.request({ method: method as 'GET', path, headers, body: body ?? null, signal })
      answer.body.on('error', () => {})
      const { bytes } = await readBody(answer.body, String(answer.headers['content-encoding'] ?? ''), maxBytes)
      const told = Object.entries(answer.headers).map(([name, value]) => [name, [value].flat().join(', ')])
      return { status: answer.statusCode, headers: Object.fromEntries(told), body: bytes.toString() }
    } catch (thrown) {
      if (signal.aborted) throw signal.reason
      throw new HostRefusal('SERVER_UNAVAILABLE', `${url.host} could not be reached (${(thrown as Error).message}).`)
    }
  }
