import { type Call, type Handler, type Interceptor, wrapPeer } from '../core/call.ts'
import type { Clock } from '../core/clock.ts'
import { ServerError, ToolwayError } from '../core/errors.ts'
import type { CapturedCall, CapturedProgress, CapturedText, CaptureStore } from '../core/history.ts'
import type { Log } from '../core/log.ts'
import type { Result } from '../core/result.ts'
import { progressValues } from '../core/waiting.ts'
import type { Json } from '../json/json.ts'

export interface CaptureOptions {
  /** Whether the operator opted in to capturing this call. */
  wants(call: Call): boolean
  readonly store: CaptureStore
  /** Redacts a value and cuts it after `maxBytes`. */
  json(value: Json, maxBytes: number): CapturedText
  redact(text: string): string
  readonly maxBytesPerCall: number
  readonly clock: Clock
  readonly log: Log
}

/** Captures the arguments, the result or error, and the progress of calls (V11). It never affects the call. */
export const capture =
  (options: CaptureOptions): Interceptor =>
  (call, next) =>
    options.wants(call) ? captured(call, next, options) : next(call)

async function captured(call: Call, next: Handler, options: CaptureOptions): Promise<Result> {
  const { store, json, redact, maxBytesPerCall, clock, log } = options
  const progress: CapturedProgress[] = []
  const began = performance.now()
  let record: CapturedCall | undefined
  /** Half is for the arguments; the result gets the rest. */
  const half = Math.ceil(maxBytesPerCall / 2)

  const keep = (make: () => CapturedCall) => {
    try {
      record = make()
      store.put(record)
    } catch (cause) {
      log.warn({ err: cause, call: call.id }, 'could not capture a call')
    }
  }
  const end = (how: () => Pick<CapturedCall, 'result' | 'error'>) => {
    const known = record
    if (known) keep(() => ({ ...known, ...how(), progress: [...progress], droppedProgress: dropped }))
  }
  let dropped = 0
  const note = (params: Json) => {
    if (progress.push(progressOf(params, performance.now() - began, redact)) <= maxProgress) return
    progress.shift()
    dropped++
  }

  keep(() => ({
    id: call.id,
    at: clock.now(),
    principal: call.caller.principal,
    agent: call.caller.agent,
    kind: call.entry.kind,
    server: call.entry.server,
    name: call.entry.name,
    uri: call.input.uri,
    arguments: json(call.input.arguments, half),
    result: undefined,
    error: undefined,
    // Shown while the call is running; `end` stores a copy.
    progress,
    droppedProgress: 0,
  }))
  try {
    const result = await next(withProgress(call, note))
    end(() => {
      const left = maxBytesPerCall - (record?.arguments.text.length ?? 0)
      return { result: json(result.body, Math.max(left, half)), error: undefined }
    })
    return result
  } catch (thrown) {
    end(() => ({ result: undefined, error: errorOf(thrown, redact) }))
    throw thrown
  }
}

const maxProgress = 100
const maxMessage = 1_000

function progressOf(params: Json, ms: number, redact: (text: string) => string): CapturedProgress {
  const { message, ...values } = progressValues(params)
  return { ms, ...values, message: message === null ? null : redact(message).slice(0, maxMessage) }
}

/** The call with a peer that notes progress. If the caller wants none, the server is asked but the caller gets none. */
function withProgress(call: Call, note: (params: Json) => void): Call {
  const { input, peer } = call
  const wanted = input.meta.progressToken !== undefined
  const noting = wrapPeer(peer, {
    notify(method, params) {
      const isProgress = method === 'notifications/progress'
      if (isProgress) note(params)
      if (!isProgress || wanted) peer.notify(method, params)
    },
  })
  if (wanted || call.entry.kind !== 'tool') return { ...call, peer: noting }
  return { ...call, peer: noting, input: { ...input, meta: { ...input.meta, progressToken: call.id } } }
}

function errorOf(thrown: unknown, redact: (text: string) => string): NonNullable<CapturedCall['error']> {
  if (thrown instanceof ServerError) {
    const { code, message } = thrown.error.value
    return { code: `rpc ${code}`, message: redact(String(message)) }
  }
  const { code, message } = ToolwayError.from(thrown).truth
  return { code, message: redact(message) }
}
