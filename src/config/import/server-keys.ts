import { configSchema } from '../schema.ts'
import { keysAt } from '../schema-keys.ts'
import { serverAliases, serverExtras } from './aliases.ts'

/** Every key of a server that we know ourselves; the entries of the other dialects may use them too. */
export const serverKeys: readonly string[] = [
  ...keysAt(configSchema, ['mcpServers', '*']),
  ...Object.keys({ ...serverAliases, ...serverExtras }),
]
