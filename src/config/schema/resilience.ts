import * as z from 'zod'
import { duration, flag, limit, names, numeric, size } from './values.ts'

const failures = numeric({ min: 1 }).describe('Number of consecutive failures that open the breaker.')
const rate = numeric({ max: 1, whole: false }).describe('Share of failed calls in the window that opens the breaker.')
const minimumCalls = numeric({ min: 1 }).describe('Minimum number of calls in the window for rate to apply.')
const window = limit().describe('Length of the window.')
const openFor = limit().describe(
  'How long the breaker stays open before it allows a trial call. Doubled after each failed trial, up to 2 minutes (or openFor, if longer); reset by a success.',
)
const halfOpenCalls = numeric({ min: 1 }).describe('Number of trial calls while the breaker is half-open.')

export const breakerSection = z.strictObject({
  failures: failures.prefault(5),
  rate: rate.prefault(0.5),
  minimumCalls: minimumCalls.prefault(20),
  window: window.prefault('30s'),
  openFor: openFor.prefault('15s'),
  halfOpenCalls: halfOpenCalls.prefault(1),
})

/** Overrides for one server. Missing keys are taken from the `breaker` section. */
export const serverBreaker = z.strictObject({ failures, rate, minimumCalls, window, openFor, halfOpenCalls }).partial()

/** Settings for retries. Only calls that are safe to repeat are retried. */
export const retrySection = z.strictObject({
  attempts: numeric({ max: 10 }).prefault(2).describe('Number of retries after the first attempt.'),
  budget: numeric({ max: 1, whole: false }).prefault(0.2).describe('Maximum share of retries among all calls.'),
  backoff: duration().prefault('100ms').describe('Maximum delay before the first retry; doubled for each further one.'),
  onTimeout: flag()
    .prefault(false)
    .describe(
      "Repeats a call that times out once, if it is safe to repeat. Both attempts share the call's timeout: the first gets half of it.",
    ),
})

export const healthSection = z.strictObject({
  interval: duration().prefault('30s').describe('Interval between health checks of a connected server; 0: never.'),
  timeout: limit().prefault('5s').describe('Time limit for a health check.'),
})

const tool = 'a tool as server.tool (* is a wildcard)'

export const cacheSection = z.strictObject({
  enabled: flag().prefault(false).describe('Enables the cache.'),
  ttl: duration().prefault('60s').describe('How long a result is cached.'),
  maxEntries: numeric({ min: 1 }).prefault(1000).describe('Maximum number of cached results.'),
  maxBytes: size().prefault('64MiB').describe('Maximum size of the cache.'),
  tools: names(tool).default([]).describe('Tools whose results are cached, in addition to trusted read-only tools.'),
  scope: z
    .enum(['principal', 'agent'])
    .default('principal')
    .describe(
      'Who shares cached results. principal: each principal has its own; agent: all principals that act as the same agent.',
    ),
  shared: names(tool).default([]).describe('Tools whose cached results all agents and principals share.'),
})

/** How many tokens a result may have. */
export const maxResultTokens = () => numeric()

export const resultsSection = z.strictObject({
  maxTokens: maxResultTokens()
    .optional()
    .describe(
      "Maximum tokens of a tool's result, at four characters per token; longer results are cut, and read_result returns the rest. 0: no limit. Default: 20,000 for clients that cut longer results themselves, no limit for others.",
    ),
  tools: z
    .record(z.string(), maxResultTokens())
    .default({})
    .describe('Maximum tokens by tool (server.tool, wildcards); they take precedence over the limits of agents.'),
  keep: duration({ least: '1s', most: '1d' }).prefault('10m').describe('How long whole results are kept.'),
  compact: flag()
    .prefault(false)
    .describe('Writes JSON arrays of at least 5 uniform flat objects as tables where that saves at least 30 %.'),
})
