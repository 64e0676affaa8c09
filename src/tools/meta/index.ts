import { describeTools } from '../code/describe-tools.ts'
import type { Tool } from '../define.ts'
import { executeTool } from './execute-tool.ts'
import { executeTools } from './execute-tools.ts'
import { findTool } from './find-tool.ts'
import { getGatewayStatus } from './get-gateway-status.ts'
import { getServerTools } from './get-server-tools.ts'
import { listServers } from './list-servers.ts'
import { listTools } from './list-tools.ts'
import type { MetaToolsOptions } from './options.ts'
import { registrySummary } from './registry-summary.ts'
import { serverHealth } from './server-health.ts'

export type { GatewayStatus } from './gateway-status.ts'
export type { MetaToolsOptions } from './options.ts'

/** The tools about tools. They have no output schemas: these would lengthen the very lists that meta-tools keep short. */
export const metaTools = (options: MetaToolsOptions): Tool[] => [
  listServers(options),
  getServerTools(options),
  executeTool(options),
  executeTools(options),
  findTool(options),
  describeTools(options),
  listTools(options),
  serverHealth(options),
  registrySummary(options),
  getGatewayStatus(options),
]
