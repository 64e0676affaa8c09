import type { Chat, ChatEvent, ChatMessage, ChatRequest, ContentPart } from '../core/chat.ts'
import { invalidArguments, ToolwayError } from '../core/errors.ts'
import { didYouMean } from '../lib/similar-text.ts'
import { answerAsAgent } from './agent-loop.ts'
import { type ChatDependencies, compilePrompts, createChatRun } from './chat-run.ts'
import { modelNames, visionModels } from './models/create-models.ts'
import type { Model } from './models/model.ts'
import { answerInStages } from './staged-loop.ts'
import { namedTool } from './tool-set.ts'

export interface ChatOptions extends Omit<ChatDependencies, 'prompts'> {
  /** The models, keyed by their names in the configuration. The caller disposes of them. */
  readonly models: ReadonlyMap<string, Model>
  /** Rejects with the reason if a model server must not fetch this URL. The message continues "The image URL … ". */
  vetImage?(url: string): Promise<unknown>
}

/** A chat that answers with the staged loop or the agent loop, using any configured model. */
export class ModelChat implements Chat, AsyncDisposable {
  readonly #options: ChatOptions & ChatDependencies
  readonly #open = new Set<AbortController>()

  constructor(options: ChatOptions) {
    this.#options = { ...options, prompts: compilePrompts(options.config.prompts) }
  }

  models(): readonly string[] {
    return modelNames(this.#options.models, this.#options.config)
  }

  visionModels(): readonly string[] {
    return visionModels(this.#options.models)
  }

  /** Streams an answer that the policy allows, and reports its end to the audit log. */
  async *answer(request: ChatRequest): AsyncGenerator<ChatEvent> {
    const allowed = Promise.withResolvers<void>()
    const ended = Promise.withResolvers<void>()
    const audited = this.#options.access.answerChat(request, () => {
      allowed.resolve()
      return ended.promise
    })
    audited.catch(allowed.reject)
    await allowed.promise
    try {
      yield* this.#answerAllowed(request)
      ended.resolve()
    } catch (thrown) {
      ended.reject(thrown)
      throw thrown
    } finally {
      // Has no effect unless the client stopped reading.
      ended.reject(abandonedError())
      await audited.catch(() => {})
    }
  }

  async *#answerAllowed(request: ChatRequest): AsyncGenerator<ChatEvent> {
    const { config, clientToolState } = this.#options
    const model = this.#pick(request.model)
    await this.#vetImages(request.messages)
    const own = new AbortController()
    this.#open.add(own)
    const signal = AbortSignal.any([request.signal, own.signal])
    const messages = await clientToolState.restore(request.caller, request.messages)
    const run = createChatRun(this.#options, { request, model, signal, messages })
    const isAgent = (request.mode ?? config.mode) === 'agent' && namedTool(request) === undefined
    const loop = isAgent ? answerAsAgent(run) : answerInStages(run)
    try {
      const { reason, handed = [] } = yield* loop
      const spent = { usage: { ...run.usage }, durationMs: run.elapsedMs() }
      yield { kind: 'end', reason, handed, ...spent, model: model.name, notes: [...run.notes] }
    } catch (thrown) {
      throw chatFailure(signal.aborted ? signal.reason : thrown, signal.aborted)
    } finally {
      this.#open.delete(own)
      // If the client stopped reading, cancel everything that is still running.
      own.abort(abandonedError())
    }
  }

  /** Checks the URLs that the model server would fetch: it may be in a network that the caller cannot reach. */
  async #vetImages(messages: readonly ChatMessage[]): Promise<void> {
    const urls = messages.flatMap(imageUrls).filter((url) => !/^data:/i.test(url))
    if (urls.length > maxImageUrls) throw invalidArguments(`Send at most ${maxImageUrls} images as URLs.`)
    const vet = (url: string) =>
      this.#options.vetImage?.(url).catch(({ message }: Error) => {
        throw invalidArguments(`The image URL ${message}; send the image as a data: URL, or use a public http(s) URL.`)
      })
    await Promise.all(urls.map(vet))
  }

  #pick(requested: string | undefined): Model {
    const { models, config } = this.#options
    const name = requested ?? config.model ?? models.keys().next().value
    const model = name === undefined ? undefined : models.get(name)
    if (model) return model
    if (models.size === 0) throw invalidArguments('No model is configured: add one under `models`.')
    const known = didYouMean(name ?? '', models.keys(), `; available: ${this.models().join(', ')}.`)
    throw invalidArguments(`There is no model "${name}" in the configuration${known}`)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const reason = new ToolwayError('CANCELLED', 'Toolway is stopping or reloading; try again.')
    for (const controller of this.#open) controller.abort(reason)
  }
}

/** Max image URLs per request, because DNS lookups share a small thread pool with file access. */
const maxImageUrls = 32

const imageUrls = ({ content }: ChatMessage): readonly string[] =>
  Array.isArray(content)
    ? content.flatMap((part: ContentPart) => (part.type === 'image_url' ? [part.image_url.url] : []))
    : []

const abandonedError = () =>
  new ToolwayError('CANCELLED', 'The client closed the connection before the answer was complete.')

function chatFailure(thrown: unknown, isAborted: boolean): ToolwayError {
  if (thrown instanceof ToolwayError) return thrown
  if (!isAborted) return ToolwayError.from(thrown)
  return new ToolwayError('CANCELLED', 'The answer was cancelled.', { cause: thrown })
}
