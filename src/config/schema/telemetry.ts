import * as z from 'zod'
import { address, duration, flag, limit, names, path, size } from './values.ts'

const traces = z.strictObject({
  otlp: address('http', 'https').meta({ secret: 'address' }).describe('OTLP endpoint for traces.'),
  disabled: flag().prefault(false).describe('Disables traces.'),
})

export const telemetrySection = z.strictObject({
  log: z
    .enum(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'])
    .default('info')
    .describe('Minimum level of log messages.'),
  metrics: flag()
    .prefault(true)
    .describe('Serves GET /metrics to admins and to credentials for all agents; to everyone if auth.token is none.'),
  traces: traces.optional().meta({ secret: 'section' }).describe('OpenTelemetry traces.'),
})

/** Bounds for captured calls. Which calls are captured is set per server and agent. */
export const captureSection = z.strictObject({
  keep: limit().prefault('1d').describe('How long captured calls are kept.'),
  maxBytes: size()
    .prefault('64MiB')
    .describe('Maximum size of all captured calls; one caller may use half of it. The oldest are dropped first.'),
  maxBytesPerCall: size().prefault('64KiB').describe('Maximum size of one captured call; longer texts are cut.'),
})

export const auditSection = z.strictObject({
  path: path().optional().describe('Audit log folder. Default: the folder audit in stores.path.'),
  arguments: z
    .enum(['none', 'shape', 'redacted', 'full'])
    .default('redacted')
    .describe('How much of the arguments is recorded.'),
  sync: z
    .enum(['writes', 'all', 'none'])
    .default('writes')
    .describe('What must be on disk before the response. writes: writes and denials; all: everything; none: nothing.'),
  unrecordedReads: z
    .enum(['allow', 'refuse'])
    .default('allow')
    .describe(
      'Whether reads are allowed while records cannot be written, for example because the disk is full. Writes are always denied in that case.',
    ),
  redact: names('the name of an argument (* is a wildcard)')
    .default([
      '*token*',
      '*password*',
      '*passwd*',
      '*passphrase*',
      '*secret*',
      '*authorization*',
      '*api_key*',
      '*apiKey*',
    ])
    .describe('Arguments whose values are never recorded, by name.'),
  retain: duration({ least: '1s', most: '36500d' }).prefault('90d').describe('How long records are kept.'),
})

export const historySection = z.strictObject({
  keep: duration({ least: '1h', most: '3650d' }).prefault('30d').describe('How long statistics and calls are kept.'),
  maxBytes: size().prefault('256MiB').describe('Maximum size of the file. The oldest calls are removed first.'),
  disabled: flag()
    .prefault(false)
    .describe('Keeps nothing: statistics, recent calls and sign-ins end with the process.'),
})

export const inboxSection = z.strictObject({
  webhook: address('http', 'https')
    .meta({ secret: 'address' })
    .optional()
    .describe('URL to which new items of the inbox are posted as JSON.'),
})
