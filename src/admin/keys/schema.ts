import * as z from 'zod'
import { dayMs } from '../../lib/duration.ts'
import { type ViewOf, view } from '../overview/schema.ts'

const agents = z.array(z.string().min(1).max(256)).max(100).describe('The agents that it may act as; `*` means all.')

const endpoints = z
  .array(z.string().min(1).max(64))
  .min(1)
  .max(100)
  .optional()
  .describe('The endpoints that it may connect to. Default: all, the admin API and the chat.')

const keyView = view('KeyView', 'An API key, without its secret and hash.', {
  id: z.string(),
  agents,
  admin: z.boolean(),
  endpoints,
  created: z.number().nullable().describe('When the current secret was created; null for keys in the configuration.'),
  expires: z.number().nullable(),
  expired: z.boolean(),
  lastUsed: z.number().nullable().describe('Last use; uses in other processes may appear up to a minute late.'),
  source: z
    .enum(['configuration', 'file'])
    .describe('Keys in the configuration (auth.keys) can be changed only there.'),
  previous: z
    .strictObject({ until: z.number(), lastUsed: z.number().nullable() })
    .nullable()
    .describe('The secret before the last rotation, as long as it is valid.'),
})
export type KeyView = ViewOf<typeof keyView>

export const keysView = view('KeysView', 'All API keys.', {
  keys: z.array(keyView),
  file: z.string().describe('The file that contains the hashes of keys that are not in the configuration.'),
  problem: z.string().nullable().describe('Why the keys in the file are not accepted.'),
  agents: z.array(z.string()).describe('The agents in the configuration.'),
  endpoints: z.array(z.string()).describe('The endpoints in the configuration.'),
})
export type KeysView = ViewOf<typeof keysView>

export const createKeyRequest = z.strictObject({
  id: z.string().max(256).describe('The name of the key: letters, digits and . _ -. It is shown in the audit log.'),
  agents: agents.default([]),
  admin: z.boolean().default(false).describe('Whether it may use the admin API.'),
  endpoints,
  expiresInMs: z
    .int()
    .min(60_000)
    .max(3650 * dayMs)
    .optional()
    .describe('Its lifetime. Default: unlimited.'),
})
export type CreateKey = ViewOf<typeof createKeyRequest>

export const rotateKeyRequest = z.strictObject({
  keepOldMs: z
    .int()
    .min(0)
    .max(90 * dayMs)
    .default(dayMs)
    .describe('How long the old secret stays valid.'),
  created: z
    .number()
    .optional()
    .describe('When the secret to replace was created. If the key has been rotated since, the request is a conflict.'),
})
export type RotateKey = ViewOf<typeof rotateKeyRequest>

export const issuedKeyView = view('IssuedKeyView', 'A new secret. It is returned only once.', {
  secret: z.string().describe('The key to send as a bearer token. Toolway stores only its hash.'),
  key: keyView,
})
export type IssuedKeyView = ViewOf<typeof issuedKeyView>
