import type { Call, Interceptor } from '../core/call.ts'

/**
 * An interceptor that only lets calls through: `check` throws or rejects for those that it stops. Most checks can tell
 * at once, and every promise that a call does not need counts.
 */
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
