import type { Config } from '../config/schema.ts'
import type { Call } from '../core/call.ts'
import { inherited } from './agents.ts'

/** Whether a call's arguments and result are captured: its server or its agent opted in. Undefined if none did. */
export function compileCapture({
  mcpServers,
  agents,
}: Pick<Config, 'mcpServers' | 'agents'>): ((call: Pick<Call, 'caller' | 'entry'>) => boolean) | undefined {
  const servers = new Set(Object.keys(mcpServers).filter((name) => mcpServers[name]?.capture))
  const captured = inherited(agents, ({ capture }) => capture)
  const own = new Set([...captured].filter(([, { value }]) => value).map(([name]) => name))
  if (servers.size + own.size === 0) return undefined
  return ({ caller, entry }) => servers.has(entry.server) || own.has(caller.agent)
}
