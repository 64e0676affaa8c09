import * as z from 'zod'
import { address, flag } from './values.ts'

const traces = z.strictObject({
  otlp: address('http', 'https').describe('OTLP endpoint that traces are sent to.'),
  disabled: flag().prefault(false).describe('Turns traces off.'),
})

/** What can be seen from outside. */
export const telemetrySection = z.strictObject({
  log: z
    .enum(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'])
    .default('info')
    .describe('Least important kind of message that is logged.'),
  metrics: flag()
    .prefault(true)
    .describe(
      'Serves GET /metrics to admins and to credentials for all agents, or to everybody where auth.token is none.',
    ),
  traces: traces.optional().describe('OpenTelemetry traces.'),
})
