import type { Caller } from '../core/call.ts'
import type { ReloadStatus } from '../reload/reload.ts'
import type { GatewayStatus } from '../tools/meta/index.ts'
import { version } from '../version.ts'
import type { World } from './world.ts'

/** What `get_gateway_status` tells (G5). */
export function gatewayStatus({ loaded: { config, files }, warnings }: World, reload: ReloadStatus): GatewayStatus {
  return {
    version,
    reload_status: { ...reload, warnings },
    policy_state: {
      agents: Object.keys(config.agents),
      default_agent: config.defaults.agent ?? null,
      deny_on_missing_agent: config.defaults.denyOnMissingAgent,
    },
    config_paths: files.map(({ path }) => path),
  }
}

/** Who is told. */
export const mayInspect = ({ policy }: World, { admin, agent }: Caller): boolean => admin || policy.mayDebug(agent)
