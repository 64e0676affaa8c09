/** The public surface of Toolway as a library. */

export { type LoadedConfig, loadConfig } from './config/load.ts'
export { ConfigError } from './config/problems.ts'
export type { Config } from './config/schema.ts'
export type { Access, Served, View } from './core/access.ts'
export type { Call, Caller, Handler, Interceptor, Peer } from './core/call.ts'
export { type ErrorCode, ServerError, ToolwayError } from './core/errors.ts'
export { Json } from './core/json.ts'
export { type Result, resultOf, structuredResult, textResult } from './core/result.ts'
export { createGateway, type Gateway, type GatewayOptions } from './gateway.ts'
export { createLog } from './telemetry/log.ts'
export { defineTool } from './tools/define.ts'
export { version } from './version.ts'
