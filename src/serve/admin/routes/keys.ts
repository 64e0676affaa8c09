import { adminRoute, type Route } from '../router.ts'
import * as keys from '../schemas/keys.ts'

/** API keys. Only admins may create them, so only admins can create keys with admin rights. */
export const keysRoutes: readonly Route[] = [
  adminRoute('GET', 'keys', 'All API keys, without their secrets', {
    answer: keys.keysView,
    run: (_, { admin }) => admin.keys(),
  }),
  adminRoute('POST', 'keys', 'Creates an API key and returns it once', {
    body: keys.createKey,
    answer: keys.issuedKeyView,
    run: ({ caller, body }, { admin }) => admin.createKey(caller, body),
  }),
  adminRoute('POST', 'keys/{id}/rotate', 'Gives a key a new secret and returns it once; the old one ends later', {
    body: keys.rotateKey,
    answer: keys.issuedKeyView,
    run: ({ caller, target, body }, { admin }) => admin.rotateKey(caller, target, body),
  }),
  adminRoute('POST', 'keys/{id}/revoke', 'Revokes a key with all its secrets', {
    answer: keys.keysView,
    run: ({ caller, target }, { admin }) => admin.revokeKey(caller, target),
  }),
]
