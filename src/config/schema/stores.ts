import * as z from 'zod'
import { address, flag, path, textLike } from './values.ts'

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
