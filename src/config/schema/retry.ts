import * as z from 'zod'
import { duration, numeric } from './values.ts'

/** When a failed call is sent again; never unless that is safe. */
export const retrySection = z.strictObject({
  attempts: numeric({ max: 10 }).prefault(2).describe('Attempts after the first one.'),
  budget: numeric({ max: 1, whole: false }).prefault(0.2).describe('Largest share of all calls that may be retries.'),
  backoff: duration().prefault('100ms').describe('Longest pause before the first retry; it doubles each time.'),
})
