import * as z from 'zod'
import { duration, limit } from './values.ts'

/** How servers are checked. */
export const healthSection = z.strictObject({
  interval: duration().prefault('30s').describe('Time between two checks of a connected server; 0 never.'),
  timeout: limit().prefault('5s').describe('Time limit of a check.'),
})
