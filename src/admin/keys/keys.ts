import type { Caller } from '../../core/call.ts'
import { ToolwayError } from '../../core/errors.ts'
import { HttpError, rpcCodes } from '../../serve/errors.ts'
import { createApiKey, type IssuedKey, listKeys, revokeApiKey, rotateApiKey } from '../../stores/api-keys.ts'
import { keyFile } from '../../stores/key-file.ts'
import { type AdminContext, audited } from '../context.ts'
import type { KeysService } from '../service.ts'

/**
 * Manages the API keys in the key file, which all processes that use the same state folder share. Secrets are never
 * audited or logged.
 */
export function createKeysAdmin({ cluster, current, keyUsage, audit, clock }: AdminContext): KeysService {
  const keyContext = () => {
    const { auth, stores } = current().loaded.config
    return { configured: auth.keys, folder: stores.path, now: clock.now() }
  }
  const keys: KeysService['keys'] = () => {
    const { config } = current().loaded
    const { keys, problem = null } = listKeys(keyContext(), keyUsage.lastUses())
    return { keys, problem, file: keyFile(config.stores.path), agents: Object.keys(config.agents) }
  }
  /** Makes an audited change, which applies to the next request. */
  const change = <T>(caller: Caller, action: Parameters<typeof audited>[2], work: () => Promise<T>) =>
    audited(audit, caller, action, async () => {
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
    async createKey(caller, { id, agents, admin, expiresInMs }) {
      const where = keyContext()
      const expires = expiresInMs === undefined ? null : new Date(where.now + expiresInMs).toISOString()
      const action = { operation: 'create_key', arguments: { id, agents, admin, expires } }
      const wanted = { id, agents, admin, lifetimeMs: expiresInMs }
      return issued(await change(caller, action, () => createApiKey(where, wanted)))
    },
    async rotateKey(caller, id, { keepOldMs, created }) {
      const action = { operation: 'rotate_key', arguments: { id, keepOldMs } }
      const rotated = change(caller, action, () => rotateApiKey(keyContext(), id, keepOldMs, created))
      return issued(
        await rotated.catch((thrown: unknown) => {
          const isConflict = thrown instanceof ToolwayError && thrown.details.auditReason === 'conflict'
          throw isConflict ? new HttpError(409, rpcCodes.request, thrown.message) : thrown
        }),
      )
    },
    async revokeKey(caller, id) {
      await change(caller, { operation: 'revoke_key', arguments: { id } }, () => revokeApiKey(keyContext(), id))
      return keys()
    },
  }
}
