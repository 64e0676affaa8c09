import * as z from 'zod'
import { address, duration, flag, names, path } from './values.ts'

const traces = z.strictObject({
  otlp: address('http', 'https').meta({ secret: 'address' }).describe('OTLP endpoint that traces are sent to.'),
  disabled: flag().prefault(false).describe('Turns traces off.'),
})

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
  traces: traces.optional().meta({ secret: 'section' }).describe('OpenTelemetry traces.'),
})

export const auditSection = z.strictObject({
  path: path().optional().describe('Folder of the audit log; audit inside stores.path otherwise.'),
  arguments: z
    .enum(['none', 'shape', 'redacted', 'full'])
    .default('redacted')
    .describe('How much of the arguments is written down.'),
  sync: z
    .enum(['writes', 'all', 'none'])
    .default('writes')
    .describe('What is on disk before the answer: writes and denials, everything, or nothing.'),
  unrecordedReads: z
    .enum(['allow', 'refuse'])
    .default('allow')
    .describe('What happens to reads while nothing can be written, on a full disk for one. Writes are always refused.'),
  redact: names('a name of an argument, with * where it helps')
    .default(['*token*', '*password*', '*secret*', '*authorization*', '*api_key*', '*apiKey*'])
    .describe('Arguments whose values are never written down, by name.'),
  retain: duration({ least: '1s', most: '36500d' }).prefault('90d').describe('How long records are kept.'),
})
