import type { Handler, Interceptor } from './call.ts'

/** Wraps a handler in interceptors, the first one outermost. The closures are built once, not per call. */
export const compose = (interceptors: readonly Interceptor[], last: Handler): Handler =>
  interceptors.reduceRight<Handler>((next, interceptor) => (call) => interceptor(call, next), last)
