import type { Chat, ChatEvent, ChatMessage, ChatRequest, ContentPart } from '../core/chat.ts'
import { invalidArguments, ToolwayError } from '../core/errors.ts'
import { didYouMean } from '../lib/similar-text.ts'
import { agent } from './agent-loop.ts'
import { type ChatDependencies, compilePrompts, createChatRun } from './chat-run.ts'
import { modelNames, visionModels } from './models/create-models.ts'
import type { Model } from './models/model.ts'
import { staged } from './staged-loop.ts'
import { namedTool } from './tool-set.ts'

export interface CreateChatOptions extends Omit<ChatDependencies, 'prompts'> {
  /** The models, keyed by their names in the configuration. The caller disposes of them. */
  readonly models: ReadonlyMap<string, Model>
  /** Rejects with the reason if a model server must not fetch this URL. The message continues "The image URL … ". */
  vetImage?(url: string): Promise<unknown>
}

/** Creates a chat that answers with the staged loop or the agent loop, using any configured model. */
export function createChat(options: CreateChatOptions): Chat & AsyncDisposable {
  const { models, vetImage, ...shared } = options
  const { access, config, clientToolState } = shared
  const dependencies: ChatDependencies = { ...shared, prompts: compilePrompts(config.prompts) }
  const names = () => modelNames(models, config)
  const open = new Set<AbortController>()

  return { models: names, visionModels: () => visionModels(models), answer, [Symbol.asyncDispose]: close }

  /** Streams an answer that the policy allows, and reports its end to the audit log. */
  async function* answer(request: ChatRequest): AsyncGenerator<ChatEvent> {
    const allowed = Promise.withResolvers<void>()
    const ended = Promise.withResolvers<void>()
    const audited = access.answerChat(request, () => {
      allowed.resolve()
      return ended.promise
    })
    audited.catch(allowed.reject)
    await allowed.promise
    try {
      yield* answerAllowed(request)
      ended.resolve()
    } catch (thrown) {
      ended.reject(thrown)
      throw thrown
    } finally {
      // Has no effect unless the client stopped reading.
      ended.reject(abandoned())
      await audited.catch(() => {})
    }
  }

  async function* answerAllowed(request: ChatRequest): AsyncGenerator<ChatEvent> {
    const model = pick(request.model)
    await vetImages(request.messages)
    const own = new AbortController()
    open.add(own)
    const signal = AbortSignal.any([request.signal, own.signal])
    const messages = await clientToolState.restore(request.caller, request.messages)
    const run = createChatRun(dependencies, { request, model, signal, messages })
    const isAgent = (request.mode ?? config.mode) === 'agent' && namedTool(request) === undefined
    const loop = isAgent ? agent(run) : staged(run)
    try {
      const { reason, handed = [] } = yield* loop
      const spent = { usage: { ...run.usage }, durationMs: run.elapsedMs() }
      yield { kind: 'end', reason, handed, ...spent, model: model.name, notes: [...run.notes] }
    } catch (thrown) {
      throw failure(signal.aborted ? signal.reason : thrown, signal.aborted)
    } finally {
      open.delete(own)
      // If the client stopped reading, cancel everything that is still running.
      own.abort(abandoned())
    }
  }

  /** Checks the URLs that the model server would fetch: it may be in a network that the caller cannot reach. */
  async function vetImages(messages: readonly ChatMessage[]): Promise<void> {
    const urls = messages.flatMap(imageUrls).filter((url) => !/^data:/i.test(url))
    if (urls.length > maxImageUrls) throw invalidArguments(`Send at most ${maxImageUrls} images as URLs.`)
    const vet = (url: string) =>
      vetImage?.(url).catch(({ message }: Error) => {
        throw invalidArguments(`The image URL ${message}; send the image as a data: URL, or use a public http(s) URL.`)
      })
    await Promise.all(urls.map(vet))
  }

  function pick(requested: string | undefined): Model {
    const name = requested ?? config.model ?? models.keys().next().value
    const model = name === undefined ? undefined : models.get(name)
    if (model) return model
    if (models.size === 0) {
      throw new ToolwayError('INVALID_ARGUMENTS', 'No model is configured: add one under `models`.')
    }
    const known = didYouMean(name ?? '', models.keys(), `; available: ${names().join(', ')}.`)
    throw new ToolwayError('INVALID_ARGUMENTS', `There is no model "${name}" in the configuration${known}`)
  }

  async function close(): Promise<void> {
    const reason = new ToolwayError('CANCELLED', 'Toolway is stopping or reloading; try again.')
    for (const controller of open) controller.abort(reason)
  }
}

/** Max image URLs per request, because DNS lookups share a small thread pool with file access. */
const maxImageUrls = 32

const imageUrls = ({ content }: ChatMessage): readonly string[] =>
  Array.isArray(content)
    ? content.flatMap((part: ContentPart) => (part.type === 'image_url' ? [part.image_url.url] : []))
    : []

const abandoned = () =>
  new ToolwayError('CANCELLED', 'The client closed the connection before the answer was complete.')

function failure(thrown: unknown, isAborted: boolean): ToolwayError {
  if (thrown instanceof ToolwayError) return thrown
  if (!isAborted) return ToolwayError.from(thrown)
  return new ToolwayError('CANCELLED', 'The answer was cancelled.', { cause: thrown })
}
