/** Toolway's public API as a library. */

import { resolve } from 'node:path'
import { openGateway } from './admin/gateway.ts'
import { type LoadedConfig, loadConfig } from './config/load.ts'
import { ConfigError, type ConfigProblem } from './config/problems.ts'
import { isRecord } from './lib/is-record.ts'
import { thrownText } from './lib/message-text.ts'
import type { Gateway, GatewayOptions } from './runtime/gateway-api.ts'
import { createLog } from './telemetry/log.ts'

export type { ChatAnswer as Answer, ChatBuilder } from './chat/chat-builder.ts'
export { createChat } from './chat/chat-builder.ts'
export { type LoadedConfig, loadConfig } from './config/load.ts'
export { ConfigError } from './config/problems.ts'
export type { Config } from './config/schema.ts'
export type { Access, Served, View } from './core/access.ts'
export type { Call, Caller, Handler, Interceptor, Peer } from './core/call.ts'
export { type ErrorCode, ServerError, ToolwayError } from './core/errors.ts'
export { type Result, resultOf, structuredResult, textResult } from './core/result.ts'
export { Json } from './json/json.ts'
export type { Gateway, GatewayOptions } from './runtime/gateway-api.ts'
export { version } from './runtime/package-paths.ts'
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
} from './serve/program-access.ts'
export { createLog } from './telemetry/log.ts'
export { defineTool, type HandlerOptions, type Tool, type ToolContext } from './tools/define-tool.ts'
export type { JsonSchema, StandardSchema, ToolSchema } from './tools/schema.ts'
export { defineSink } from './tools/sinks/sink.ts'

/** Options for `createGateway`. */
export interface ProgramOptions extends Omit<GatewayOptions, 'log' | 'shared'> {
  /**
   * The result of `loadConfig`, or an object with the keys of a configuration file. The default is an empty
   * configuration; no file is read.
   */
  readonly config?: LoadedConfig | Readonly<Record<string, unknown>>
  /** By default, warnings and errors are logged to standard error. */
  readonly log?: GatewayOptions['log']
}

/**
 * Creates a gateway in this process. Dispose of it to stop its servers.
 *
 * @example
 * ```ts
 * await using gateway = await createGateway({ config: { mcpServers: { files: { … } } }, tools: [defineTool({ … })] })
 * const { content } = await gateway.call('files__read_file', { path: '/tmp/a' }, { agent: 'reader' })
 * ```
 */
export function createGateway(options?: ProgramOptions): Promise<Gateway>
export function createGateway(config: LoadedConfig, options?: Omit<ProgramOptions, 'config'>): Promise<Gateway>
export async function createGateway(
  first: LoadedConfig | ProgramOptions = {},
  second?: Omit<ProgramOptions, 'config'>,
): Promise<Gateway> {
  checkOptions(first, second)
  const {
    config = {},
    log = createLog({ level: 'warn' }),
    ...options
  }: ProgramOptions = isLoaded(first) ? { ...second, config: first } : first
  return openGateway(isLoaded(config) ? config : await inline(config), { ...options, log })
}

const optionNames: Readonly<Record<keyof ProgramOptions, true>> = {
  ...{ config: true, tools: true, log: true, load: true, watch: true, source: true, print: true, clock: true },
}

/** Programs in JavaScript have no type checks; without these, a policy in the wrong place would be ignored. */
function checkOptions(first: unknown, second: unknown = {}): void {
  if (!isRecord(first) || !isRecord(second)) {
    throw new TypeError('createGateway needs an object, such as { config: { mcpServers: { … } } }.')
  }
  const options = isLoaded(first) ? second : first
  if (isLoaded(first) ? 'config' in second : Object.keys(second).length > 0) {
    throw new TypeError('createGateway takes all options, with "config", in one object.')
  }
  const unknown = Object.keys(options).find((name) => !Object.hasOwn(optionNames, name))
  if (unknown !== undefined) {
    throw new TypeError(`createGateway has no option "${unknown}". The keys of a configuration file go into "config".`)
  }
  const { config = {}, tools = [] } = options
  if (typeof config !== 'object' || config === null) {
    throw new TypeError('"config" must be an object or the result of loadConfig, which reads configuration files.')
  }
  if (!Array.isArray(tools)) throw new TypeError('"tools" must be a list of tools created with defineTool.')
}

const isLoaded = (value: object): value is LoadedConfig => 'problemAt' in value && 'filesToWatch' in value

/** Reads an object like a file with the same content: with the same validation, variables and messages. */
async function inline(config: object): Promise<LoadedConfig> {
  const [env, cwd] = [process.env, process.cwd()]
  // Relative paths and the state folder depend on this path. There is no such file, so errors do not name it.
  const path = resolve(cwd, 'toolway.json')
  const named = (problem: ConfigProblem): ConfigProblem =>
    problem.file === path ? { ...problem, file: 'config', line: undefined, column: undefined } : problem
  try {
    const loaded = await loadConfig({ paths: [path], drafts: new Map([[path, jsonOf(config)]]), env, cwd })
    return { ...loaded, problemAt: (at, message) => named(loaded.problemAt(at, message)) }
  } catch (thrown) {
    throw thrown instanceof ConfigError ? new ConfigError(thrown.problems.map(named), thrown.filesToWatch) : thrown
  }
}

function jsonOf(config: object): string {
  const isLost = (value: unknown) =>
    typeof value === 'number' ? !Number.isFinite(value) : ['function', 'symbol', 'bigint'].includes(typeof value)
  try {
    return JSON.stringify(config, (key, value) => {
      if (isLost(value)) throw new TypeError(`the value of "${key}" is ${String(value)}`)
      return value
    })
  } catch (thrown) {
    throw new TypeError(`"config" cannot be written as JSON: ${thrownText(thrown).split('\n', 1)[0]}.`)
  }
}
