/** The public surface of Toolway as a library. */

export type { Answer, ChatBuilder } from './chat/builder.ts'
export { createChat } from './chat/library.ts'
export { type LoadedConfig, loadConfig } from './config/load.ts'
export { ConfigError } from './config/problems.ts'
export type { Config } from './config/schema.ts'
export type { Access, Served, View } from './core/access.ts'
export type { Call, Caller, Handler, Interceptor, Peer } from './core/call.ts'
export { type ErrorCode, ServerError, ToolwayError } from './core/errors.ts'
export { Json } from './core/json.ts'
export { type Result, resultOf, structuredResult, textResult } from './core/result.ts'
export type { Gateway, GatewayOptions } from './gateway.ts'
export { createGateway, type ProgramOptions } from './library.ts'
export type {
  BatchAnswer,
  BatchCall,
  BatchResult,
  CallOptions,
  ListedTool,
  ListOptions,
  ProgramAccess,
  Progress,
  ToolResult,
} from './serve/program.ts'
export { createLog } from './telemetry/log.ts'
export { defineTool, type HandlerOptions, type Tool, type ToolContext } from './tools/define.ts'
export type { JsonSchema, StandardSchema, ToolSchema } from './tools/schema.ts'
export { defineSink } from './tools/sinks/sink.ts'
export { version } from './version.ts'
