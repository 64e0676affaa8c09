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
import { createProfile, kindOfAnswer, type OptionalField, type Profile } from '../server-profile.ts'
import {
  brokenStream,
  connectionError,
  isAboutMessages,
  isAboutServer,
  isAboutTools,
  mayAcceptWeakerForm,
  RefusalInBody,
  refusalError,
  refusalIn,
  refusesReasoning,
  requiresTools,
  timeoutError,
  unsupportedField,
} from './errors.ts'
import { type HttpResponse, post, refusalOf, responseObjects, withStallTimeout } from './http.ts'

type OpenAIModelConfig = Extract<Config['models'][string], { kind: 'openai' }>

export interface OpenAIModelOptions {
  readonly name: string
  readonly config: Pick<OpenAIModelConfig, 'baseUrl' | 'model' | 'apiKey' | 'constraint' | 'timeouts'>
  /** What Toolway has learned about the server. It is shared, so that it outlives this model. */
  readonly profile?: Profile
  readonly clock: Clock
  readonly log: Log
}

/** How many times a request to a busy server is retried, and the longest wait before a retry. */
const maxWaits = 2
const maxWaitMs = 20_000

export function openaiModel(options: OpenAIModelOptions): Model {
  const { name, config, clock, log } = options
  const { total: totalMs, step: stepMs, chunk: chunkMs } = config.timeouts
  const profile = options.profile ?? createProfile(config.baseUrl, config.constraint)
  const url = new URL(config.baseUrl)
  const server: ModelServer = { name, origin: url.origin }
  const { headers: authorization, secrets } = modelCredentials(name, url, config.apiKey)
  const headers = {
    'content-type': 'application/json',
    accept: 'application/json, text/event-stream',
    ...authorization,
  }
  const path = `${url.pathname.replace(/\/+$/, '')}/chat/completions${url.search}`
  // Disable the HTTP timeouts: our own deadlines apply, and a model may think for a long time.
  const httpOptions = { headersTimeout: 0, bodyTimeout: 0, allowH2: false }
  let client: HttpClient | undefined

  return { name, complete, [Symbol.asyncDispose]: async () => client?.[Symbol.asyncDispose]() }

  async function* complete(request: ModelRequest): AsyncGenerator<Delta> {
    request.signal.throwIfAborted()
    const began = clock.monotonic()
    const tooSlow = () => timeoutError(server, 'did not answer', totalMs, 'total')
    using total = deadline(clock, totalMs, tooSlow, request.signal)
    const attempts = createAttempts(request, profile)
    let { plan } = attempts
    for (let waits = 0; ; ) {
      const body = bodyOf(config.model, request, plan, profile.unsupportedFields)
      const refusal = yield* attempt(plan, body, total.signal, () => learn(plan, attempts.refusals))
      if (!refusal) return
      const field = unsupportedField(refusal, body)
      if (field) {
        profile.markUnsupported(field)
        log.info({ model: name, field }, 'the model server does not support this field; omitting it from now on')
      } else if (isBusy(refusal.status) && !isUnpaid(refusal)) {
        const ms = refusal.retryAfterMs ?? 1_000 * 2 ** waits
        const left = totalMs - (clock.monotonic() - began)
        if (waits++ >= maxWaits || ms > Math.min(maxWaitMs, left)) throw refusalError(server, refusal)
        log.debug({ model: name, status: refusal.status, ms }, 'the model server is busy; retrying')
        await pause(clock, ms, total.signal)
      } else {
        const next = attempts.after(plan, refusal)
        if (!next) throw refusalError(server, attempts.firstRefusal ?? refusal)
        plan = next
      }
    }
  }

  /** Sends a request in one form and streams the answer; returns the refusal if the server refused the request. */
  async function* attempt(
    plan: RequestPlan,
    body: object,
    signal: AbortSignal,
    taken: () => void,
  ): AsyncGenerator<Delta, ModelRefusal | undefined> {
    using step = deadline(clock, stepMs, () => timeoutError(server, 'did not finish', stepMs, 'step'), signal)
    const stall = new AbortController()
    const until = AbortSignal.any([step.signal, stall.signal])
    const stalled = () => stall.abort(timeoutError(server, 'stopped sending data', chunkMs, 'chunk'))
    let begun = false
    try {
      client ??= createHttpClient(url, httpOptions)
      using answer = await post(client, { path, headers, body: JSON.stringify(body), signal: until })
      begun = true
      if (answer.status !== 200) return await refusalOf(answer, secrets, clock.now())
      const chunks = withStallTimeout(answer.chunks, clock, chunkMs, stalled, () => {
        return answer.isFinished() && !signal.aborted
      })
      yield* deltasOf(checked(answer, responseObjects(server, answer, chunks), taken), plan)
      return undefined
    } catch (thrown) {
      if (until.aborted) throw until.reason
      if (thrown instanceof RefusalInBody) return thrown.refusal
      throw connectionError(server, thrown, begun)
    }
  }

  /** Passes the objects on; throws if one reports an error. */
  async function* checked(
    answer: HttpResponse,
    objects: AsyncIterable<unknown>,
    begin: () => void,
  ): AsyncGenerator<unknown> {
    let isFirst = true
    for await (const object of objects) {
      const refusal = refusalIn(object, secrets)
      if (refusal && isFirst) throw new RefusalInBody(refusal)
      if (refusal) throw brokenStream(server, refusal.serverMessage)
      if (isFirst) {
        begin()
        profile.recognise(kindOfAnswer(answer.header, object))
      }
      isFirst = false
      yield object
    }
  }

  function learn(taken: RequestPlan, refusals: readonly RefusedPlan[]): void {
    const refused = refusals
      .filter(({ refusal }) => !isAboutMessages(refusal))
      .map(({ plan, refusal }) => ({ ...plan, onlyContent: plan.offersTools && !isAboutServer(refusal) }))
    profile.learn(taken, refused)
    if (refused.length === 0) return
    const fields = { model: name, refused: refused.map(({ form }) => form), taken: taken.form }
    log.info(fields, 'the model server rejected stricter forms of the constraint; using this one')
  }
}

interface RefusedPlan {
  readonly plan: RequestPlan
  readonly refusal: ModelRefusal
}

/** The plans for a request, one after another until the server accepts one. */
function createAttempts(request: ModelRequest, profile: Profile) {
  const isText = profile.toolsRequired && !request.tools
  let messages = isText ? withoutToolMessages(request.messages) : request.messages
  if (profile.reasoningRefused) messages = messages.map(withoutReasoning)
  let plans = plansFor({ ...request, messages }, profile)
  let refusals: RefusedPlan[] = []
  // Report the first refusal: it concerns the strongest form, which should have worked.
  let firstRefusal: ModelRefusal | undefined

  const again = (simpler: readonly ChatMessage[]): RequestPlan => {
    messages = simpler
    plans = plansFor({ ...request, messages }, profile)
    refusals = []
    return plans.next().value as RequestPlan
  }

  return {
    plan: plans.next().value as RequestPlan,
    /** The refused plans with the current messages. */
    get refusals() {
      return refusals
    },
    get firstRefusal() {
      return firstRefusal
    },
    /** The plan to try after a refusal, which is a weaker form or has simpler messages; undefined if there is none. */
    after(plan: RequestPlan, refusal: ModelRefusal): RequestPlan | undefined {
      refusals.push({ plan, refusal })
      firstRefusal ??= refusal
      if (!mayAcceptWeakerForm(refusal)) return undefined
      if (refusesReasoning(refusal) && messages.some(hasReasoning)) {
        profile.reasoningRefused = true
        return again(messages.map(withoutReasoning))
      }
      const hasResults = !request.tools && messages.some(({ role }) => role === 'tool')
      if (hasResults && requiresTools(refusal)) {
        profile.toolsRequired = true
        return again(withoutToolMessages(messages))
      }
      const next = plans.next()
      if (!next.done) return next.value
      return hasResults && isAboutTools(firstRefusal) ? again(withoutToolMessages(messages)) : undefined
    },
  }
}

function bodyOf(
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
