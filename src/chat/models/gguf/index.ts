import { availableParallelism } from 'node:os'
import type { Config } from '../../../config/schema.ts'
import type { Clock } from '../../../core/clock.ts'
import { deadline } from '../../../core/deadline.ts'
import { ToolwayError } from '../../../core/errors.ts'
import type { Log } from '../../../core/log.ts'
import { deltasOf } from '../deltas.ts'
import { abilities } from '../kinds.ts'
import type { Delta, Model, ModelRequest } from '../model.ts'
import { type Known, type Plan, plansFor } from '../plan.ts'
import { createChannel } from './channel.ts'
import { closed, failed, tooLong, tooMany, tooSlow } from './failures.ts'
import { historyOf } from './history.ts'
import { importLibrary, type LlamaLibrary } from './library.ts'
import { keepLoaded } from './residence.ts'
import { speak } from './speech.ts'
import { createTurns } from './turns.ts'
import { loadWeights } from './weights.ts'

/** A model of the configuration that is a file. */
export type GgufModelConfig = Extract<Config['models'][string], { kind: 'gguf' }>

export interface GgufModelOptions {
  readonly name: string
  readonly config: Pick<GgufModelConfig, 'path' | 'context' | 'threads' | 'idle' | 'timeout'>
  readonly clock: Clock
  readonly log: Log
  /** Where `node-llama-cpp` comes from. */
  load?(): Promise<LlamaLibrary>
  /** Bytes of memory that may be used. */
  free?(): number
  /** What chance begins with, for each answer anew. */
  seed?(): number
}

/** Whoever waits longer than for these is better told so. */
const maxWaiting = 16

/** More threads than half of the processors slow one another down, and everybody else. */
const fewThreads = (): number => Math.max(1, Math.floor(availableParallelism() / 2))

const randomSeed = (): number => Math.floor(Math.random() * 2 ** 31)

const known: Known = {
  kind: 'embedded',
  abilities: abilities.embedded,
  formsFor: () => abilities.embedded.forms,
  toolForms: () => abilities.embedded.tools,
}

/** A model that runs in this process. It is loaded when it is first asked, and answers one request at a time. */
export function ggufModel(options: GgufModelOptions): Model {
  const { name, config, clock, log, load = importLibrary, free, seed = randomSeed } = options
  const closing = new AbortController()
  const turns = createTurns(maxWaiting, () => tooMany(name, maxWaiting))
  const { path, context, threads = fewThreads() } = config
  const weights = keepLoaded({
    load: () => loadWeights({ name, path, context, threads, log, load, ...(free && { free }) }, closing.signal),
    idleMs: config.idle,
    stuck: () =>
      log.error({ model: name }, 'the model did not stop when it was told to; the next request loads it again'),
    unloaded: () => log.info({ model: name }, 'the model has been idle and was unloaded'),
    clock,
  })

  return {
    name,
    complete,
    async [Symbol.asyncDispose]() {
      closing.abort(closed(name))
      await weights[Symbol.asyncDispose]()
    },
  }

  async function* complete(request: ModelRequest): AsyncGenerator<Delta> {
    const left = new AbortController()
    using total = deadline(clock, config.timeout, () => tooSlow(name, config.timeout), request.signal)
    const signal = AbortSignal.any([total.signal, closing.signal, left.signal])
    const plan = plansFor(request, known).next().value as Plan
    const turn = await turns.take(signal)
    const objects = createChannel<object>()
    // Who stops listening leaves at once; the turn lasts until the model has noticed.
    const work = answer(request, plan, signal, objects.push).finally(turn.giveBack)
    work.then(objects.end, objects.fail)
    try {
      yield* deltasOf(objects.read(signal), plan)
    } finally {
      left.abort()
    }
  }

  /** Lets the model answer, in the words that servers use, so that one reader understands both. */
  async function answer(
    request: ModelRequest,
    plan: Plan,
    signal: AbortSignal,
    tell: (object: object) => void,
  ): Promise<void> {
    const history = historyOf(name, plan.messages)
    await weights.use(async (loaded) => {
      signal.throwIfAborted()
      try {
        const { isCut, promptTokens, completionTokens } = await speak(loaded, {
          history,
          gbnf: (plan.fields as { readonly gbnf?: string }).gbnf,
          sampling: { temperature: request.temperature ?? 0.8, topK: 40, topP: 0.95, minP: 0.05, seed: seed() },
          maxTokens: request.maxTokens,
          signal,
          tell: (kind, text) => {
            tell({ choices: [{ delta: kind === 'text' ? { content: text } : { reasoning_content: text } }] })
          },
          tooLong: (tokens) => tooLong(name, tokens, loaded.context),
        })
        const usage = { prompt_tokens: promptTokens, completion_tokens: completionTokens }
        tell({ choices: [{ finish_reason: isCut ? 'length' : 'stop' }], usage })
      } catch (thrown) {
        signal.throwIfAborted()
        throw thrown instanceof ToolwayError ? thrown : failed(name, loaded.samplerFault() ?? thrown)
      }
    }, signal)
  }
}
