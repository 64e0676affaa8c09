import { createModels } from '../chat/models/create-models.ts'
import type { Model } from '../chat/models/model.ts'
import type { Config } from '../config/schema.ts'
import type { Clock } from '../core/clock.ts'
import { type Executor, HostRefusal } from '../core/executor.ts'
import { pinnedClient, readBody } from '../egress/guarded-get.ts'
import { createLazy, setBounded } from '../lib/memoize.ts'
import { vetUrl } from '../policy/guards/url.ts'
import type { SandboxFetch } from '../sandbox/host-calls.ts'
import type { SharedParts } from './generations.ts'
import { moduleFile } from './package-paths.ts'
import type { GenerationContext } from './process-state.ts'

/** The models, and the sandbox that runs agents' programs. Each is reused until its own settings change. */
export interface Engines {
  readonly models: ReturnType<typeof openModels>
  readonly executor: ReplaceableExecutor
}

export interface ReplaceableExecutor extends Executor {
  /** The keys of the environments that a replacement of this executor loses. */
  environments(): readonly string[]
}

export function createEngines(
  config: Config,
  context: GenerationContext,
  parts: SharedParts,
  before: (Engines & { readonly parts: SharedParts }) | undefined,
): Engines {
  return {
    models: parts.share(before?.parts, 'models', config.models, () => openModels(config.models, context)),
    executor: parts.share(before?.parts, 'executor', config.sandbox, () =>
      openExecutor(config.sandbox, context, before?.executor),
    ),
  }
}

function openModels(config: Config['models'], { profiles, budgets, clock, log }: GenerationContext) {
  const byName: ReadonlyMap<string, Model> = createModels(config, {
    profiles,
    requests: budgets.model_requests,
    clock,
    log,
  })
  return {
    byName,
    async [Symbol.asyncDispose]() {
      await Promise.all([...byName.values()].map((model) => model[Symbol.asyncDispose]()))
    },
  }
}

export function openExecutor(
  config: Config['sandbox'],
  { budgets, clock, log }: Pick<GenerationContext, 'clock' | 'log'> & Partial<Pick<GenerationContext, 'budgets'>>,
  before?: ReplaceableExecutor,
): ReplaceableExecutor {
  const fetch = config.allowNetwork.length > 0 ? sandboxFetch(config.allowNetwork, clock) : undefined
  return lazyExecutor(async () => {
    const { SandboxExecutor } = await import('../sandbox/executor.ts')
    return new SandboxExecutor({ config, child: moduleFile('sandbox/guest/main'), fetch, budgets, clock, log })
  }, before?.environments())
}

const maxEnvironments = 1000

const sandboxReplaced = 'The settings of the sandbox were changed.'

/**
 * Loads the sandbox when the first program runs, because most gateways never run one. The first run in an environment
 * that was lost with the previous sandbox reports this.
 */
function lazyExecutor(load: () => Promise<Executor>, before: readonly string[] = []): ReplaceableExecutor {
  const lost = new Set(before)
  const used = new Map<string, true>()
  const executor = createLazy(load)
  return {
    probe: async () => (await executor.get()).probe(),
    environments: () => [...lost, ...used.keys()].slice(-maxEnvironments),
    async run(program) {
      const { environment } = program
      if (environment === undefined) return (await executor.get()).run(program)
      setBounded(used, environment, true, maxEnvironments)
      const outcome = await (await executor.get()).run(program)
      if (outcome.status === 'refused' || !lost.delete(environment)) return outcome
      return { ...outcome, reset: outcome.reset ?? sandboxReplaced }
    },
    async [Symbol.asyncDispose]() {
      await (await executor.loaded())?.[Symbol.asyncDispose]()
    },
  }
}

const maxFetchBytes = 1024 * 1024

/**
 * Fetches from the hosts in `sandbox.allowNetwork` for programs. A host may have a private address only if listed by
 * its exact name: anyone can register a name that matches a pattern and point it at the operator's network.
 */
const sandboxFetch =
  (allowed: readonly string[], clock: Clock): SandboxFetch =>
  async ({ url: requested, method, headers, body }, signal) => {
    const allowPrivate = allowed.includes(new URL(requested).hostname)
    const { url, addresses } = await vetUrl(requested, { allowPrivate, clock }).catch((thrown: Error) => {
      throw new HostRefusal('UNSAFE_URL', `The URL ${thrown.message}.`)
    })
    await using client = await pinnedClient(url, addresses)
    try {
      const path = url.pathname + url.search
      const response = await client.request({ method: method as 'GET', path, headers, body: body ?? null, signal })
      response.body.on('error', () => {})
      const { bytes } = await readBody(response.body, String(response.headers['content-encoding'] ?? ''), maxFetchBytes)
      const joined = Object.entries(response.headers).map(([name, value]) => [name, [value].flat().join(', ')])
      return { status: response.statusCode, headers: Object.fromEntries(joined), body: bytes.toString() }
    } catch (thrown) {
      signal.throwIfAborted()
      throw new HostRefusal('SERVER_UNAVAILABLE', `${url.host} could not be reached (${(thrown as Error).message}).`)
    }
  }
