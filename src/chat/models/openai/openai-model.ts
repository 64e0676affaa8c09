import type { Config } from '../../../config/schema.ts'
import type { Clock } from '../../../core/clock.ts'
import { deadline, waitFor } from '../../../core/deadline.ts'
import { ToolwayError } from '../../../core/errors.ts'
import type { Log } from '../../../core/log.ts'
import { basicAuthOf, urlSecrets } from '../../../lib/basic-auth.ts'
import { createHttpClient, type HttpClient } from '../../../lib/http-client.ts'
import { deltasOf } from '../completion-decoder.ts'
import type { Delta, Model, ModelRequest } from '../model.ts'
import { plansFor, type RequestPlan } from '../request-plan.ts'
import { createProfile, kindOfAnswer, type OptionalField, type Profile } from '../server-profile.ts'
import {
  brokenStream,
  connectionError,
  isBusy,
  type ModelRefusal,
  type ModelServer,
  mayAcceptWeakerForm,
  RefusalInBody,
  refusalError,
  refusalIn,
  refusalOf,
  timeoutError,
  unsupportedField,
} from './errors.ts'
import { type HttpResponse, post, withStallTimeout } from './http.ts'
import { responseObjects } from './response-objects.ts'

export type OpenAIModelConfig = Extract<Config['models'][string], { kind: 'openai' }>

export interface ModelTimeouts {
  /** For one answer, including retries. */
  readonly totalMs: number
  /** For one request, from the first byte sent to the last received. */
  readonly stepMs: number
  /** Between two chunks of a stream. */
  readonly chunkMs: number
}

const defaultTimeouts: ModelTimeouts = { totalMs: 300_000, stepMs: 180_000, chunkMs: 30_000 }

export interface OpenAIModelOptions {
  readonly name: string
  readonly config: Pick<OpenAIModelConfig, 'baseUrl' | 'model' | 'apiKey' | 'constraint'>
  readonly timeouts?: ModelTimeouts
  /** What was learned about the server; shared to outlive this model. */
  readonly profile?: Profile
  readonly clock: Clock
  readonly log: Log
}

/** Retries of a busy server, and the longest wait. */
const maxWaits = 2
const maxWaitMs = 20_000

/** A model on an OpenAI-compatible server. */
export function openaiModel(options: OpenAIModelOptions): Model {
  const { name, config, clock, log, timeouts = defaultTimeouts } = options
  const profile = options.profile ?? createProfile(config.baseUrl, config.constraint)
  const url = new URL(config.baseUrl)
  const server: ModelServer = { name, origin: url.origin }
  const { headers, secrets } = modelHeaders(name, url, config.apiKey)
  const path = modelPath(url)
  // No HTTP timeouts: our own deadlines apply, and a model may think for long.
  const patience = { headersTimeout: 0, bodyTimeout: 0, allowH2: false }
  let way: HttpClient | undefined

  return { name, complete, [Symbol.asyncDispose]: async () => way?.[Symbol.asyncDispose]() }

  async function* complete(request: ModelRequest): AsyncGenerator<Delta> {
    request.signal.throwIfAborted()
    const began = clock.monotonic()
    using total = deadline(
      clock,
      timeouts.totalMs,
      () => timeoutError(server, 'did not answer', timeouts.totalMs, 'total'),
      request.signal,
    )
    const plans = plansFor(request, profile)
    const refusals: { readonly plan: RequestPlan; readonly refusal: ModelRefusal }[] = []
    let plan = plans.next().value as RequestPlan
    for (let waits = 0; ; ) {
      const body = bodyOf(config.model, request, plan, profile.unsupportedFields)
      const refusal = yield* attempt(plan, body, total.signal, () => learn(plan, refusals))
      if (!refusal) return
      const field = unsupportedField(refusal, body)
      if (field) {
        profile.markUnsupported(field)
        log.info({ model: name, field }, 'the model server does not support this field; omitting it from now on')
      } else if (isBusy(refusal.status)) {
        const ms = refusal.retryAfterMs ?? 1_000 * 2 ** waits
        const left = timeouts.totalMs - (clock.monotonic() - began)
        if (waits++ >= maxWaits || ms > Math.min(maxWaitMs, left)) throw refusalError(server, refusal)
        log.debug({ model: name, status: refusal.status, ms }, 'the model server is busy; retrying')
        await pause(clock, ms, total.signal)
      } else {
        refusals.push({ plan, refusal })
        const next = mayAcceptWeakerForm(refusal) ? plans.next() : undefined
        // Report the first refusal: the strongest form should have worked.
        if (!next || next.done) throw refusalError(server, refusals[0]?.refusal ?? refusal)
        plan = next.value
      }
    }
  }

  /** Sends a request in one form and streams the answer; returns the refusal if there was no output yet. */
  async function* attempt(
    plan: RequestPlan,
    body: object,
    signal: AbortSignal,
    taken: () => void,
  ): AsyncGenerator<Delta, ModelRefusal | undefined> {
    using step = deadline(
      clock,
      timeouts.stepMs,
      () => timeoutError(server, 'did not finish', timeouts.stepMs, 'step'),
      signal,
    )
    const stall = new AbortController()
    const until = AbortSignal.any([step.signal, stall.signal])
    const stalled = () => stall.abort(timeoutError(server, 'stopped sending data', timeouts.chunkMs, 'chunk'))
    let begun = false
    try {
      way ??= createHttpClient(url, patience)
      using answer = await post(way, { path, headers, body: JSON.stringify(body), signal: until })
      begun = true
      if (answer.status !== 200) return await refusalOf(answer, secrets, clock.now())
      const chunks = withStallTimeout(answer.chunks, { clock, ms: timeouts.chunkMs, stalled })
      yield* deltasOf(checked(answer, responseObjects(server, answer, chunks), taken), plan)
      return undefined
    } catch (thrown) {
      if (until.aborted) throw until.reason
      if (thrown instanceof RefusalInBody) return thrown.refusal
      throw connectionError(server, thrown, begun)
    }
  }

  /** Passes the objects on unless one reports an error. */
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

  function learn(taken: RequestPlan, refusals: readonly { readonly plan: RequestPlan }[]): void {
    profile.learn(
      taken,
      refusals.map(({ plan }) => plan),
    )
    if (refusals.length === 0) return
    const forms = refusals.map(({ plan }) => plan.form)
    log.info(
      { model: name, refused: forms, taken: taken.form },
      'the model server refused stronger forms of the constraint; using this one',
    )
  }
}

async function pause(clock: Clock, ms: number, signal: AbortSignal): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  using _timer = clock.after(ms, resolve)
  await waitFor(promise, signal)
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
  for (const field of unsupportedFields) delete body[field]
  return body
}

/** Headers for every request, and the secrets in them. */
interface ModelHeaders {
  readonly headers: Readonly<Record<string, string>>
  readonly secrets: readonly string[]
}

/** Query parameters that hold keys. */
const isSecret = /key|token|secret|sig|auth|pass/i

/** Builds the request headers. The key `none` means no key; credentials in the URL become a header. */
function modelHeaders(name: string, url: URL, apiKey: string | undefined): ModelHeaders {
  const common = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }
  const asked = [...url.searchParams].filter(([name]) => isSecret.test(name)).map(([, value]) => value)
  const authorization = basicAuthOf(url)
  if (authorization !== undefined)
    return { headers: { ...common, authorization }, secrets: [...urlSecrets(url), ...asked] }
  if (apiKey === undefined || apiKey === 'none') return { headers: common, secrets: asked }
  if (!/^[\x21-\x7e]+$/.test(apiKey)) {
    throw new ToolwayError(
      'INVALID_ARGUMENTS',
      `The key of the model ${name} cannot be sent. Check models.${name}.apiKey for spaces and line breaks.`,
    )
  }
  return { headers: { ...common, authorization: `Bearer ${apiKey}` }, secrets: [apiKey, ...asked] }
}

/** The path for completions. */
const modelPath = (url: URL): string => `${url.pathname.replace(/\/+$/, '')}/chat/completions${url.search}`
