import type { Entry } from '../../core/entry.ts'
import { describeToolsTool } from '../code/describe-tools.ts'
import type { Tool } from '../define-tool.ts'
import { callReadTool, callWriteTool, executeTool, executeTools } from './execute-tools.ts'
import { findTool, getServerTools, listToolsTool } from './list-tools.ts'
import { readResult, resultTemplate } from './read-result.ts'
import { getGatewayStatus, listServers, registrySummary, serverHealth } from './servers.ts'
import type { MetaToolsOptions } from './shared.ts'
import { findSkill, getSkill } from './skills.ts'

export type { GatewayStatus, MetaToolsOptions, ResultReader, StatusRefusal } from './shared.ts'

/** Tools that list, describe and run other tools. They have no output schemas, to keep the tool list short. */
export const metaTools = (options: MetaToolsOptions): Tool[] => [
  listServers(options),
  getServerTools(options),
  executeTool(options),
  callReadTool(options),
  callWriteTool(options),
  executeTools(options),
  findTool(options),
  describeToolsTool(options),
  listToolsTool(options),
  serverHealth(options),
  registrySummary(options),
  getGatewayStatus(options),
  findSkill(options),
  getSkill(options),
  ...(options.results ? [readResult({ ...options, results: options.results })] : []),
]

/** The resources of the gateway itself. */
export const metaResources = (options: MetaToolsOptions): Entry[] =>
  options.results ? [resultTemplate({ ...options, results: options.results })] : []
