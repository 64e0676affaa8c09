import * as z from 'zod'
import type { Access } from '../../core/access.ts'
import type { Call, Caller } from '../../core/call.ts'
import type { Clock } from '../../core/clock.ts'
import type { GatewayStatus } from './gateway-status.ts'

/** All that the meta-tools hold: they see and run what their caller may, and nothing more. */
export interface MetaToolsOptions {
  readonly access: Access
  readonly clock: Clock
  /** Nothing where this caller may not see it. */
  status(caller: Caller): GatewayStatus | undefined
  /** The caller of a call as the agent it asked for; throws INVALID_AGENT_ID where its credential may not be that one. */
  asAgent(call: Call, agentId: string | undefined): Caller
}

/** The argument by which a caller with several agents says which one it is. */
export const agentId = z.string().optional().describe('The agent to act as, if you may act as several.')
