import type { Caller } from '../../core/call.ts'
import { createApiKey, type IssuedKey, listApiKeys, revokeApiKey, rotateApiKey } from '../../stores/api-keys.ts'
import { keyFile } from '../../stores/key-file.ts'
import { type AdminContext, auditOperation } from '../context.ts'
import type { CreateKey, IssuedKeyView, KeysView, RotateKey } from '../contract.ts'
import { adminRoute, type Route } from '../router.ts'
import * as schema from './schema.ts'

export type KeysService = ReturnType<typeof createKeysAdmin>

/**
 * Manages the API keys in the key file, which all processes that use the same state folder share. Secrets are never
 * audited or logged.
 */
export function createKeysAdmin({ cluster, current, keyUsage, audit, clock }: AdminContext) {
  const keyContext = () => {
    const { auth, stores } = current().loaded.config
    return { configured: auth.keys, folder: stores.path, now: clock.now() }
  }
  const keys = (): KeysView => {
    const { config } = current().loaded
    const { keys, problem = null } = listApiKeys(keyContext(), keyUsage.lastUses())
    const [agents, endpoints] = [Object.keys(config.agents), Object.keys(config.endpoints)]
    return { keys, problem, file: keyFile(config.stores.path), agents, endpoints }
  }
  /** Makes an audited change, which applies to the next request. */
  const change = <T>(caller: Caller, action: Parameters<typeof auditOperation>[2], work: () => Promise<T>) =>
    auditOperation(audit, caller, action, async () => {
      const made = await work()
      cluster.keysChanged()
      return made
    })
  const issued = ({ key: secret, stored }: IssuedKey) => {
    const [key] = keys().keys.filter(({ id, source }) => id === stored.id && source === 'file')
    if (!key) throw new Error(`the key ${stored.id} was removed meanwhile`)
    return { secret, key }
  }

  return {
    keys,
    async createKey(caller: Caller, { expiresInMs, ...key }: CreateKey): Promise<IssuedKeyView> {
      const where = keyContext()
      const expires = expiresInMs === undefined ? null : new Date(where.now + expiresInMs).toISOString()
      const action = { operation: 'create_key', arguments: { ...key, expires } }
      const wanted = { ...key, lifetimeMs: expiresInMs }
      return issued(await change(caller, action, () => createApiKey(where, wanted)))
    },
    async rotateKey(caller: Caller, id: string, { keepOldMs, created }: RotateKey): Promise<IssuedKeyView> {
      const action = { operation: 'rotate_key', arguments: { id, keepOldMs } }
      return issued(await change(caller, action, () => rotateApiKey(keyContext(), id, keepOldMs, created)))
    },
    async revokeKey(caller: Caller, id: string): Promise<KeysView> {
      await change(caller, { operation: 'revoke_key', arguments: { id } }, () => revokeApiKey(keyContext(), id))
      return keys()
    },
  }
}

/** API keys. Only admins may create them, so only admins can create keys with admin rights. */
export const keysRoutes = (admin: KeysService): readonly Route[] => [
  adminRoute('GET', 'keys', 'All API keys, without their secrets', {
    answer: schema.keysView,
    run: () => admin.keys(),
  }),
  adminRoute('POST', 'keys', 'Creates an API key and returns it once', {
    body: schema.createKeyRequest,
    answer: schema.issuedKeyView,
    run: ({ caller, body }) => admin.createKey(caller, body),
  }),
  adminRoute('POST', 'keys/{id}/rotate', 'Gives a key a new secret and returns it once; the old one ends later', {
    body: schema.rotateKeyRequest,
    answer: schema.issuedKeyView,
    run: ({ caller, target, body }) => admin.rotateKey(caller, target, body),
  }),
  adminRoute('POST', 'keys/{id}/revoke', 'Revokes a key with all its secrets', {
    answer: schema.keysView,
    run: ({ caller, target }) => admin.revokeKey(caller, target),
  }),
]
