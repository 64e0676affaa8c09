import * as z from 'zod'
import { address, flag, path } from './values.ts'

const disabled = flag().prefault(false).describe('Leaves it unused.')

/** Where state is kept. */
export const storesSection = z.strictObject({
  path: path()
    .optional()
    .describe(
      "Folder for everything that survives a restart; the user's state folder otherwise, apart for each configuration.",
    ),
  redis: z
    .strictObject({ url: address('redis', 'rediss').describe('Address of Redis or Valkey.'), disabled })
    .optional()
    .describe('Shared limits, cache and sessions of several replicas.'),
  postgres: z
    .strictObject({
      url: address('postgres', 'postgresql').describe('Address of PostgreSQL.'),
      migrate: z
        .enum(['auto', 'manual'])
        .default('auto')
        .describe('Whether tables are made and changed at the start, or only by `toolway migrate`.'),
      disabled,
    })
    .optional()
    .describe('Shared audit of several replicas.'),
})
