import * as z from 'zod'
import { address, flag, path, textLike } from './values.ts'

const disabled = flag().prefault(false).describe('Leaves it unused.')

export const storesSection = z.strictObject({
  path: path()
    .optional()
    .describe(
      "Folder for everything that survives a restart; the user's state folder otherwise, apart for each configuration.",
    ),
  redis: z
    .strictObject({
      url: address('redis', 'rediss').meta({ secret: 'address' }).describe('Address of Redis or Valkey.'),
      disabled,
    })
    .optional()
    .meta({ secret: 'section' })
    .describe('Shared limits, cache and sessions of several replicas.'),
  key: textLike(/^.{32,}$/, 'a secret of at least 32 characters, the same in all replicas')
    .optional()
    .meta({ secret: true })
    .describe(
      'Seals what replicas share in Redis, and never goes there: with it they share grants of OAuth, too. A secret such as `${file:./key}`, made by `openssl rand -base64 32`.',
    ),
  postgres: z
    .strictObject({
      url: address('postgres', 'postgresql').meta({ secret: 'address' }).describe('Address of PostgreSQL.'),
      migrate: z
        .enum(['auto', 'manual'])
        .default('auto')
        .describe('Whether tables are made and changed at the start, or only by `toolway migrate`.'),
      disabled,
    })
    .optional()
    .meta({ secret: 'section' })
    .describe('Shared audit of several replicas.'),
})
