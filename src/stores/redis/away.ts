import { ToolwayError } from '../../core/errors.ts'

/** For what there is no way to do without Redis. It says nothing about whoever asked, so trying again is all there is. */
export const redisAway = (what: string): ToolwayError =>
  new ToolwayError(
    'OVERLOADED',
    `Redis does not answer, and only there is known ${what} (stores.redis); try again in a moment.`,
    { retryAfterMs: 1_000, unsent: true },
  )
