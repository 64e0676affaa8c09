import * as z from 'zod'
import { address, duration, flag, limit, names, path, size, textLike } from './values.ts'

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

const disabled = flag().prefault(false).describe('Disables this store.')

const sslModes = ['disable', 'allow', 'prefer', 'require', 'verify-ca', 'verify-full', 'no-verify']

function hasKnownSslMode(url: string): boolean {
  if (!URL.canParse(url) || url.includes('${')) return true
  return new URL(url).searchParams.getAll('sslmode').every((mode) => sslModes.includes(mode))
}

export const storesSection = z.strictObject({
  path: path()
    .optional()
    .describe("Folder for persistent state. Default: a folder per configuration in the user's state folder."),
  redis: z
    .strictObject({
      url: address('redis', 'rediss')
        .refine(
          (value) => !URL.canParse(value) || value.includes('${') || /^\/?\d*\/?$/.test(new URL(value).pathname),
          {
            error: 'the number of a database after the host, such as redis://host:6379/0',
          },
        )
        .meta({ secret: 'address' })
        .describe('Address of Redis or Valkey.'),
      disabled,
    })
    .optional()
    .meta({ secret: 'section' })
    .describe('Limits, cache, sessions and dashboard sign-ins that replicas share.'),
  key: textLike(/^.{32,}$/, 'a secret of at least 32 characters, the same in all replicas')
    .optional()
    .meta({ secret: true })
    .describe(
      'Encrypts what replicas share in Redis; required to share OAuth grants. A secret such as `${file:./key}`, created with `openssl rand -base64 32`.',
    ),
  postgres: z
    .strictObject({
      url: address('postgres', 'postgresql')
        .refine(hasKnownSslMode, { error: `a URL whose sslmode is one of ${sslModes.join(', ')}` })
        .meta({ secret: 'address' })
        .describe('Address of PostgreSQL.'),
      migrate: z
        .enum(['auto', 'manual'])
        .default('auto')
        .describe('auto: create and change tables at startup; manual: only with `toolway migrate`.'),
      disabled,
    })
    .optional()
    .meta({ secret: 'section' })
    .describe('A copy of the audit logs of all replicas.'),
})
