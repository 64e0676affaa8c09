import * as z from 'zod'
import { limit, numeric } from './values.ts'

const failures = numeric({ min: 1 }).describe('Failures in a row that open the breaker.')
const rate = numeric({ max: 1, whole: false }).describe('Share of failed calls in the window that opens it.')
const minimumCalls = numeric({ min: 1 }).describe('Calls that the window must hold before the share counts.')
const window = limit().describe('Length of the window.')
const openForText =
  'How long the breaker stays open before it lets a call try again. Doubled each time that call fails, up to 2 minutes (or openFor itself, if longer); a success resets it.'
const openFor = limit().describe(openForText)
const halfOpenCalls = numeric({ min: 1 }).describe('Calls let through while it tries.')

/** When a failing server is left alone. */
export const breakerSection = z.strictObject({
  failures: failures.prefault(5).describe('Failures in a row that open the breaker.'),
  rate: rate.prefault(0.5).describe('Share of failed calls in the window that opens it.'),
  minimumCalls: minimumCalls.prefault(20).describe('Calls that the window must hold before the share counts.'),
  window: window.prefault('30s').describe('Length of the window.'),
  openFor: openFor.prefault('15s').describe(openForText),
  halfOpenCalls: halfOpenCalls.prefault(1).describe('Calls let through while it tries.'),
})

/** The same for one server; what is left out comes from the section `breaker`. */
export const serverBreaker = z.strictObject({ failures, rate, minimumCalls, window, openFor, halfOpenCalls }).partial()
