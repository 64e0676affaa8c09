import * as z from 'zod'
import { duration, flag, limit, names, numeric, size } from './values.ts'

const failures = numeric({ min: 1 }).describe('Failures in a row that open the breaker.')
const rate = numeric({ max: 1, whole: false }).describe('Share of failed calls in the window that opens it.')
const minimumCalls = numeric({ min: 1 }).describe('Calls that the window must hold before the share counts.')
const window = limit().describe('Length of the window.')
const openForText =
  'How long the breaker stays open before it lets a call try again. Doubled each time that call fails, up to 2 minutes (or openFor itself, if longer); a success resets it.'
const openFor = limit().describe(openForText)
const halfOpenCalls = numeric({ min: 1 }).describe('Calls let through while it tries.')

export const breakerSection = z.strictObject({
  failures: failures.prefault(5).describe('Failures in a row that open the breaker.'),
  rate: rate.prefault(0.5).describe('Share of failed calls in the window that opens it.'),
  minimumCalls: minimumCalls.prefault(20).describe('Calls that the window must hold before the share counts.'),
  window: window.prefault('30s').describe('Length of the window.'),
  openFor: openFor.prefault('15s').describe(openForText),
  halfOpenCalls: halfOpenCalls.prefault(1).describe('Calls let through while it tries.'),
})

/** Overrides for one server; missing keys come from the section `breaker`. */
export const serverBreaker = z.strictObject({ failures, rate, minimumCalls, window, openFor, halfOpenCalls }).partial()

/** Calls are retried only when that is safe. */
export const retrySection = z.strictObject({
  attempts: numeric({ max: 10 }).prefault(2).describe('Attempts after the first one.'),
  budget: numeric({ max: 1, whole: false }).prefault(0.2).describe('Largest share of all calls that may be retries.'),
  backoff: duration().prefault('100ms').describe('Longest pause before the first retry; it doubles each time.'),
})

export const healthSection = z.strictObject({
  interval: duration().prefault('30s').describe('Time between two checks of a connected server; 0 never.'),
  timeout: limit().prefault('5s').describe('Time limit of a check.'),
})

const tool = 'a tool as server.tool, with * where it helps'

export const cacheSection = z.strictObject({
  enabled: flag().prefault(false).describe('Whether results are kept.'),
  ttl: duration().prefault('60s').describe('How long a result is kept.'),
  maxEntries: numeric({ min: 1 }).prefault(1000).describe('Most results kept.'),
  maxBytes: size().prefault('64MiB').describe('Most bytes kept.'),
  tools: names(tool).default([]).describe('Tools whose results are kept, besides trusted read-only ones.'),
  scope: z
    .enum(['principal', 'agent'])
    .default('principal')
    .describe('Who shares results: each principal alone, or all principals that act as the same agent.'),
  shared: names(tool).default([]).describe('Tools whose results all agents and principals share.'),
})
