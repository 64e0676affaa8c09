import type { Call, Handler, Interceptor } from '../core/call.ts'

/** Wraps a handler in interceptors, the first one outermost. The closures are built once, not per call. */
export const compose = (interceptors: readonly Interceptor[], last: Handler): Handler =>
  interceptors.reduceRight<Handler>((next, interceptor) => (call) => interceptor(call, next), last)

/** An interceptor that only checks. Synchronous checks, the usual case, cost no extra promise. */
export const onceFree = (check: (call: Call) => Promise<unknown> | undefined): Interceptor => {
  return (call, next) => {
    try {
      const waiting = check(call)
      return waiting ? waiting.then(() => next(call)) : next(call)
    } catch (error) {
      return Promise.reject(error)
    }
  }
}
