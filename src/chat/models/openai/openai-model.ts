import type { Config } from '../../../config/schema.ts'
import type { ChatMessage } from '../../../core/chat.ts'
import type { Clock } from '../../../core/clock.ts'
import { deadline, pause } from '../../../core/deadline.ts'
import type { Log } from '../../../core/log.ts'
import { createHttpClient, type HttpClient } from '../../../egress/http-client.ts'
import {
  isBusy,
  isUnpaid,
  type ModelRefusal,
  type ModelServer,
  modelCredentials,
} from '../../../egress/model-server.ts'
import { deltasOf } from '../completion-decoder.ts'
import type { Delta, Model, ModelRequest } from '../model.ts'
import { hasReasoning, plansFor, type RequestPlan, withoutReasoning, withoutToolMessages } from '../request-plan.ts'
import { kindOfAnswer, type OptionalField, ServerProfile } from '../server-profile.ts'
import {
  brokenStream,
  completionConnectionError,
  isAboutMessages,
  isAboutServer,
  isAboutTools,
  mayAcceptWeakerForm,
  RefusalInBody,
  refusalError,
  refusalInBody,
  refusesReasoning,
  requiresTools,
  timeoutError,
  unsupportedField,
} from './errors.ts'
import { type HttpResponse, postCompletion, refusalResponse, responseObjects, withStallTimeout } from './http.ts'

type OpenAIModelConfig = Extract<Config['models'][string], { kind: 'openai' }>

export interface OpenAIModelOptions {
  readonly name: string
  readonly config: Pick<OpenAIModelConfig, 'baseUrl' | 'model' | 'apiKey' | 'constraint' | 'timeouts'>
  /** What Toolway has learned about the server. It is shared, so that it outlives this model. */
  readonly profile?: ServerProfile
  readonly clock: Clock
  readonly log: Log
}

/** How many times a request to a busy server is retried, and the longest wait before a retry. */
const maxWaits = 2
const maxBusyWaitMs = 20_000

export class OpenAIModel implements Model {
  readonly name: string
  readonly #options: OpenAIModelOptions
  readonly #profile: ServerProfile
  readonly #url: URL
  readonly #server: ModelServer
  readonly #path: string
  readonly #headers: Readonly<Record<string, string | undefined>>
  readonly #secrets: readonly string[]
  #client: HttpClient | undefined

  constructor(options: OpenAIModelOptions) {
    const { name, config, profile } = options
    const url = new URL(config.baseUrl)
    const { headers, secrets } = modelCredentials(name, url, config.apiKey)
    this.name = name
    this.#options = options
    this.#profile = profile ?? new ServerProfile(config.baseUrl, config.constraint)
    this.#url = url
    this.#server = { name, origin: url.origin }
    this.#path = `${url.pathname.replace(/\/+$/, '')}/chat/completions${url.search}`
    this.#headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream', ...headers }
    this.#secrets = secrets
  }

  async *complete(request: ModelRequest): AsyncGenerator<Delta> {
    request.signal.throwIfAborted()
    const { name, config, clock, log } = this.#options
    const { total: totalMs } = config.timeouts
    const began = clock.monotonic()
    const tooSlow = () => timeoutError(this.#server, 'did not answer', totalMs, 'total')
    using total = deadline(clock, totalMs, tooSlow, request.signal)
    const attempts = new RequestAttempts(request, this.#profile)
    for (let waits = 0; ; ) {
      const body = completionBody(config.model, request, attempts.plan, this.#profile.unsupportedFields)
      const refusal = yield* this.#attempt(attempts, body, total.signal)
      if (!refusal) return
      const field = unsupportedField(refusal, body)
      if (field) {
        this.#profile.unsupportedFields.add(field)
        log.info({ model: name, field }, 'the model server does not support this field; omitting it from now on')
      } else if (isBusy(refusal.status) && !isUnpaid(refusal)) {
        const ms = refusal.retryAfterMs ?? 1_000 * 2 ** waits
        const left = totalMs - (clock.monotonic() - began)
        if (waits++ >= maxWaits || ms > Math.min(maxBusyWaitMs, left)) throw refusalError(this.#server, refusal)
        log.debug({ model: name, status: refusal.status, ms }, 'the model server is busy; retrying')
        await pause(clock, ms, total.signal)
      } else if (!attempts.next(refusal)) throw refusalError(this.#server, attempts.firstRefusal ?? refusal)
    }
  }

  /** Sends a request in one form and streams the answer; returns the refusal if the server refused the request. */
  async *#attempt(
    attempts: RequestAttempts,
    body: object,
    signal: AbortSignal,
  ): AsyncGenerator<Delta, ModelRefusal | undefined> {
    const { config, clock } = this.#options
    const { step: stepMs, chunk: chunkMs } = config.timeouts
    using step = deadline(clock, stepMs, () => timeoutError(this.#server, 'did not finish', stepMs, 'step'), signal)
    const stall = new AbortController()
    const until = AbortSignal.any([step.signal, stall.signal])
    const stalled = () => stall.abort(timeoutError(this.#server, 'stopped sending data', chunkMs, 'chunk'))
    const request = { path: this.#path, headers: this.#headers, body: JSON.stringify(body), signal: until }
    let begun = false
    try {
      // Disable the HTTP timeouts: our own deadlines apply, and a model may think for a long time.
      this.#client ??= createHttpClient(this.#url, { headersTimeout: 0, bodyTimeout: 0, allowH2: false })
      using answer = await postCompletion(this.#client, request)
      begun = true
      if (answer.status !== 200) return await refusalResponse(answer, this.#secrets, clock.now())
      const chunks = withStallTimeout(answer.chunks, clock, chunkMs, stalled, () => {
        return answer.isFinished && !signal.aborted
      })
      const objects = responseObjects(this.#server, answer, chunks)
      yield* deltasOf(this.#checked(answer, objects, attempts), attempts.plan)
      return undefined
    } catch (thrown) {
      if (until.aborted) throw until.reason
      if (thrown instanceof RefusalInBody) return thrown.refusal
      throw completionConnectionError(this.#server, thrown, begun)
    }
  }

  /** Passes the objects on; throws if one reports an error. */
  async *#checked(
    answer: HttpResponse,
    objects: AsyncIterable<unknown>,
    attempts: RequestAttempts,
  ): AsyncGenerator<unknown> {
    let isFirst = true
    for await (const object of objects) {
      const refusal = refusalInBody(object, this.#secrets)
      if (refusal && isFirst) throw new RefusalInBody(refusal)
      if (refusal) throw brokenStream(this.#server, refusal.serverMessage)
      if (isFirst) {
        this.#learn(attempts)
        this.#profile.recognise(kindOfAnswer(answer.header, object))
      }
      isFirst = false
      yield object
    }
  }

  #learn({ plan: taken, refusals }: RequestAttempts): void {
    const refused = refusals
      .filter(({ refusal }) => !isAboutMessages(refusal))
      .map(({ plan, refusal }) => ({ ...plan, onlyContent: plan.offersTools && !isAboutServer(refusal) }))
    this.#profile.learn(taken, refused)
    if (refused.length === 0) return
    const fields = { model: this.name, refused: refused.map(({ form }) => form), taken: taken.form }
    this.#options.log.info(fields, 'the model server rejected stricter forms of the constraint; using this one')
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#client?.[Symbol.asyncDispose]()
  }
}

/** The plans for a request, one after another until the server accepts one. */
class RequestAttempts {
  readonly #request: ModelRequest
  readonly #profile: ServerProfile
  #messages!: readonly ChatMessage[]
  #plans!: Generator<RequestPlan>
  plan!: RequestPlan
  /** The refused plans with the current messages. */
  refusals: { readonly plan: RequestPlan; readonly refusal: ModelRefusal }[] = []
  /** The one to report: it concerns the strongest form, which should have worked. */
  firstRefusal: ModelRefusal | undefined

  constructor(request: ModelRequest, profile: ServerProfile) {
    this.#request = request
    this.#profile = profile
    const messages = profile.toolsRequired && !request.tools ? withoutToolMessages(request.messages) : request.messages
    this.#begin(profile.reasoningRefused ? messages.map(withoutReasoning) : messages)
  }

  /** Goes on to the plan after a refusal, a weaker form or one with simpler messages; false if there is none. */
  next(refusal: ModelRefusal): boolean {
    this.refusals.push({ plan: this.plan, refusal })
    this.firstRefusal ??= refusal
    if (!mayAcceptWeakerForm(refusal)) return false
    if (refusesReasoning(refusal) && this.#messages.some(hasReasoning)) {
      this.#profile.reasoningRefused = true
      return this.#begin(this.#messages.map(withoutReasoning))
    }
    const hasResults = !this.#request.tools && this.#messages.some(({ role }) => role === 'tool')
    if (hasResults && requiresTools(refusal)) {
      this.#profile.toolsRequired = true
      return this.#begin(withoutToolMessages(this.#messages))
    }
    const { value, done } = this.#plans.next()
    if (!done) this.plan = value
    return !done || (hasResults && isAboutTools(this.firstRefusal) && this.#begin(withoutToolMessages(this.#messages)))
  }

  #begin(messages: readonly ChatMessage[]): true {
    this.#messages = messages
    this.#plans = plansFor({ ...this.#request, messages }, this.#profile)
    this.plan = this.#plans.next().value as RequestPlan
    this.refusals = []
    return true
  }
}

function completionBody(
  model: string,
  request: ModelRequest,
  plan: RequestPlan,
  unsupportedFields: ReadonlySet<OptionalField>,
): Readonly<Record<string, unknown>> {
  const { stream = false, maxTokens, temperature } = request
  const body: Record<string, unknown> = { model, messages: plan.messages, ...plan.fields, stream }
  if (stream) body.stream_options = { include_usage: true }
  if (temperature !== undefined) body.temperature = temperature
  if (maxTokens !== undefined)
    body[unsupportedFields.has('max_tokens') ? 'max_completion_tokens' : 'max_tokens'] = maxTokens
  if (request.parallelToolCalls === false && 'tools' in plan.fields) body.parallel_tool_calls = false
  for (const field of unsupportedFields) delete body[field]
  return body
}
