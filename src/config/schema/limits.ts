import * as z from 'zod'
import { numeric } from './values.ts'

const perMinute = numeric({ min: 1 })

/** How much may happen at a time; calls a minute are unlimited unless configured. */
export const limitsSection = z.strictObject({
  perMinute: perMinute.optional().describe('Calls a minute of each agent, to whatever has no limit of its own.'),
  servers: z.record(z.string(), perMinute).default({}).describe('Calls a minute by server.'),
  tools: z.record(z.string(), perMinute).default({}).describe('Calls a minute by server.tool.'),
  queue: numeric().prefault(256).describe('Calls that may wait for a free place.'),
  concurrency: numeric({ min: 1 }).prefault(256).describe('Calls in flight.'),
})
