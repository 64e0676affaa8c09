import { hash } from 'node:crypto'
import type { Redis } from 'ioredis'

/** Runs a script by its hash; a Redis that does not know it (any more) is told. */
export type Script = (
  client: Redis,
  keys: readonly string[],
  values: readonly (string | Buffer | number)[],
) => Promise<unknown>

export function createScript(text: string): Script {
  const sha = hash('sha1', text)
  return async (client, keys, values) => {
    try {
      return await client.evalsha(sha, keys.length, ...keys, ...values)
    } catch (thrown) {
      if (!(thrown instanceof Error) || !thrown.message.startsWith('NOSCRIPT')) throw thrown
      return client.eval(text, keys.length, ...keys, ...values)
    }
  }
}
