import { availableParallelism } from 'node:os'
import type { Config } from '../../../config/schema.ts'
import type { ChatMessage } from '../../../core/chat.ts'
import type { Clock } from '../../../core/clock.ts'
import { deadline } from '../../../core/deadline.ts'
import { ToolwayError } from '../../../core/errors.ts'
import type { Budget } from '../../../core/limits/budget.ts'
import { FairSemaphore } from '../../../core/limits/fair-semaphore.ts'
import { fixedLimits } from '../../../core/limits/fixed-limits.ts'
import type { Log } from '../../../core/log.ts'
import { deltasOf } from '../completion-decoder.ts'
import type { Delta, Model, ModelRequest } from '../model.ts'
import { type PlanningProfile, plansFor, type RequestPlan, withoutToolMessages } from '../request-plan.ts'
import { serverCapabilities } from '../server-profile.ts'
import { conversationTooLong, generationFailed, modelClosed, modelQueueFull, modelTooSlow, textOnly } from './errors.ts'
import {
  type HistoryItem,
  importLibrary,
  type LlamaLibrary,
  type SamplingOptions,
  type TokenId,
} from './llama-library.ts'
import { keepLoaded, type LoadedModel, loadLlamaModel } from './load-model.ts'

type GgufModelConfig = Extract<Config['models'][string], { kind: 'gguf' }>

export interface GgufModelOptions {
  readonly name: string
  readonly config: Pick<GgufModelConfig, 'path' | 'context' | 'threads' | 'idle' | 'timeout'>
  readonly requests?: Budget | undefined
  readonly clock: Clock
  readonly log: Log
  load?(): Promise<LlamaLibrary>
  /** Returns the free memory in bytes. */
  free?(): number
  /** Returns the random seed for one answer. */
  seed?(): number
}

const maxQueuedRequests = fixedLimits.modelQueue.value

/** Default number of threads. Using more than half of the processors would slow down everything else. */
const fewThreads = (): number => Math.max(1, Math.floor(availableParallelism() / 2))

const randomSeed = (): number => Math.floor(Math.random() * 2 ** 31)

const embeddedProfile: PlanningProfile = {
  kind: 'embedded',
  capabilities: serverCapabilities.embedded,
  formsFor: () => serverCapabilities.embedded.forms,
  toolForms: () => serverCapabilities.embedded.tools,
}

/** A model that runs in this process. It is loaded on first use and answers one request at a time. */
export class GgufModel implements Model {
  readonly name: string
  readonly #options: GgufModelOptions
  readonly #weights: ReturnType<typeof keepLoaded<LoadedModel>>
  readonly #turns = new FairSemaphore({ slots: 1 })
  readonly #closing = new AbortController()

  constructor(options: GgufModelOptions) {
    const { name, config, clock, log, load = importLibrary, free } = options
    const { path, context, threads = fewThreads() } = config
    this.name = name
    this.#options = options
    this.#weights = keepLoaded({
      load: () => loadLlamaModel({ name, path, context, threads, log, load, free }, this.#closing.signal),
      idleMs: config.idle,
      stuck: () => log.error({ model: name }, 'the model did not stop when cancelled; the next request reloads it'),
      unloaded: () => log.info({ model: name }, 'idle model unloaded'),
      clock,
    })
  }

  async *complete(request: ModelRequest): AsyncGenerator<Delta> {
    const { name, config, clock, requests } = this.#options
    const left = new AbortController()
    using total = deadline(clock, config.timeout, () => modelTooSlow(name, config.timeout), request.signal)
    const signal = AbortSignal.any([total.signal, this.#closing.signal, left.signal])
    const plan = plansFor(request, embeddedProfile).next().value as RequestPlan
    const { owner = '' } = request
    if (this.#turns.waiting >= maxQueuedRequests) throw modelQueueFull(name, maxQueuedRequests)
    requests?.claim(owner)
    const turn = await this.#turns.take(owner, signal).catch((error) => {
      requests?.give(owner)
      throw error
    })
    let answer!: ReadableStreamDefaultController<object>
    const objects = new ReadableStream<object>({
      start(controller) {
        answer = controller
      },
      cancel: () => left.abort(),
    })
    signal.addEventListener('abort', () => answer.error(signal.reason), { once: true })
    // The consumer can stop waiting at once, but the slot stays taken until the model has stopped.
    const work = this.#answer(request, plan, signal, (object) => answer.enqueue(object)).finally(() => {
      requests?.give(owner)
      turn[Symbol.dispose]()
    })
    work.then(
      () => signal.aborted || answer.close(),
      (thrown) => answer.error(thrown),
    )
    try {
      yield* deltasOf(objects, plan)
    } finally {
      left.abort()
    }
  }

  /** Generates an answer and emits it as completion chunks, so that both kinds of models can use the same decoder. */
  async #answer(
    request: ModelRequest,
    plan: RequestPlan,
    signal: AbortSignal,
    emit: (object: object) => void,
  ): Promise<void> {
    const { name, seed = randomSeed } = this.#options
    const history = historyOf(name, plan.messages)
    await this.#weights.use(async (loaded) => {
      signal.throwIfAborted()
      try {
        const { isCut, ...usage } = await generateAnswer(loaded, {
          name,
          history,
          gbnf: (plan.fields as { readonly gbnf?: string }).gbnf,
          sampling: { temperature: request.temperature ?? 0.8, topK: 40, topP: 0.95, minP: 0.05, seed: seed() },
          maxTokens: request.maxTokens,
          signal,
          emit: (delta) => emit({ choices: [{ delta }] }),
        })
        emit({ choices: [{ finish_reason: isCut ? 'length' : 'stop' }], usage })
      } catch (thrown) {
        signal.throwIfAborted()
        throw thrown instanceof ToolwayError ? thrown : generationFailed(name, loaded.samplerFault() ?? thrown)
      }
    }, signal)
  }

  async [Symbol.asyncDispose]() {
    this.#closing.abort(modelClosed(this.name))
    await this.#weights[Symbol.asyncDispose]()
  }
}

/** Converts a conversation to the library's format. Calls and results become text. */
function historyOf(name: string, messages: readonly ChatMessage[]): readonly HistoryItem[] {
  const items = withoutToolMessages(messages).map((message): HistoryItem => {
    const text = plainMessageText(name, message.content ?? '')
    if (message.role === 'assistant') return { type: 'model', response: [text] }
    return { type: message.role === 'system' ? 'system' : 'user', text }
  })
  return [...items, { type: 'model', response: [] }]
}

function plainMessageText(name: string, content: Exclude<ChatMessage['content'], null>): string {
  if (typeof content === 'string') return content
  return content
    .map((part) => {
      if (part.type !== 'text') throw textOnly(name)
      return part.text
    })
    .join('\n')
}

interface GenerateRequest {
  /** The model's name. */
  readonly name: string
  readonly history: readonly HistoryItem[]
  /** The grammar for the answer; undefined if the answer is unconstrained. */
  readonly gbnf: string | undefined
  readonly sampling: SamplingOptions
  readonly maxTokens: number | undefined
  readonly signal: AbortSignal
  emit(delta: { readonly content: string } | { readonly reasoning_content: string }): void
}

/** Minimum number of tokens that must be available for the answer. */
const minAnswerTokens = 64
/** The prompt is evaluated in slices of this many tokens, so that evaluation can be cancelled between slices. */
const promptSlice = 128

async function generateAnswer(loaded: LoadedModel, request: GenerateRequest) {
  const { sequence, context } = loaded
  const { signal } = request
  const prompt = promptFor(loaded, request)
  const room = context - prompt.length
  if (room < minAnswerTokens) throw conversationTooLong(request.name, prompt.length, context)
  const maxTokens = Math.min(request.maxTokens ?? room, room - 1)
  // Do not evaluate the last token yet: it is evaluated when the answer is generated.
  await sequence.adaptStateToTokens(prompt.slice(0, -1), false)
  for (let at = sequence.nextTokenIndex; prompt.length - at > promptSlice; at += promptSlice) {
    signal.throwIfAborted()
    await sequence.evaluateWithoutGeneratingNewTokens(prompt.slice(at, at + promptSlice))
  }
  signal.throwIfAborted()
  const written = await (request.gbnf === undefined
    ? generateFreely(loaded, request, maxTokens)
    : generateConstrained(loaded, request, request.gbnf, prompt.slice(sequence.nextTokenIndex), maxTokens))
  return { ...written, prompt_tokens: prompt.length }
}

function promptFor({ wrapper, model }: LoadedModel, { history, gbnf }: GenerateRequest): readonly TokenId[] {
  const { contextText, prefixTriggers, noPrefixTrigger } = wrapper.generateContextState({ chatHistory: history })
  const tokens = contextText.tokenize(model.tokenizer)
  if (gbnf === undefined) return tokens
  // Some models first announce what kind of answer follows. A grammar prevents that, so write the announcement on the
  // model's behalf.
  const opening = prefixTriggers?.find(({ type }) => type === 'response')
  const generated =
    noPrefixTrigger?.type === 'response' ? [noPrefixTrigger.inject] : [opening?.triggers[0], opening?.inject]
  return [...tokens, ...generated.flatMap((text) => text?.tokenize(model.tokenizer) ?? [])]
}

/** Generates an answer with a grammar. The answer ends where the grammar ends. */
async function generateConstrained(
  { library, llama, model, sequence }: LoadedModel,
  { sampling, signal, emit }: GenerateRequest,
  gbnf: string,
  prompt: readonly TokenId[],
  maxTokens: number,
) {
  const grammar = await llama.createGrammar({ grammar: gbnf })
  const grammarEvaluationState = new library.LlamaGrammarEvaluationState({ model, grammar })
  const generated: TokenId[] = []
  let emitted = 0
  for await (const token of sequence.evaluate(prompt, { ...sampling, grammarEvaluationState })) {
    signal.throwIfAborted()
    generated.push(token)
    // Keep special tokens in the text, because the grammar treats them as text.
    const text = model.detokenize(generated.slice(emitted), true, generated.slice(Math.max(0, emitted - 8), emitted))
    // A character may span several tokens, so wait until it is complete.
    if (!text.endsWith('\ufffd')) {
      emit({ content: text })
      emitted = generated.length
    }
    if (generated.length >= maxTokens) return { isCut: true, completion_tokens: generated.length }
  }
  return { isCut: false, completion_tokens: generated.length }
}

/** Generates an answer without a grammar. The library detects thinking and the end of the answer. */
async function generateFreely(
  { library, sequence, wrapper }: LoadedModel,
  { history, sampling, signal, emit }: GenerateRequest,
  maxTokens: number,
) {
  const chat = new library.LlamaChat({ contextSequence: sequence, chatWrapper: wrapper })
  const before = sequence.tokenMeter.usedOutputTokens
  try {
    const { metadata } = await chat.generateResponse(history, {
      ...sampling,
      maxTokens,
      signal,
      contextShift: { size: 1 },
      onResponseChunk: ({ segmentType, text }) =>
        emit(segmentType === undefined ? { content: text } : { reasoning_content: text }),
    })
    return {
      isCut: metadata.stopReason === 'maxTokens',
      completion_tokens: sequence.tokenMeter.usedOutputTokens - before,
    }
  } finally {
    chat.dispose({ disposeSequence: false })
  }
}
