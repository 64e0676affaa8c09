import type { ServerConfig } from '../config/schema.ts'
import type { Definition, Kind, Traits } from '../core/entry.ts'
import { matches } from '../core/wildcard.ts'
import { asObject } from './introduction.ts'

/** Whether a read-only server has tools, none of which is known to be a read: none of them can be used then. */
export function hidesEveryTool(config: ServerConfig, tools: readonly Definition[]): boolean {
  if (!config.readOnly || tools.length === 0) return false
  return !tools.some(
    (tool) => traitsOf('tool', String(tool.name), tool, { server: '', config, timeoutMs: 0, maxTimeoutMs: 0 }).readOnly,
  )
}

export interface TraitOptions {
  readonly server: string
  readonly config: ServerConfig
  /** Of a call, and of one whose server reports progress. */
  readonly timeoutMs: number
  readonly maxTimeoutMs: number
}

/** The operator's word counts; the server's own annotations only where the operator trusts them. */
export function traitsOf(kind: Kind, name: string, definition: Definition, options: TraitOptions): Traits {
  const { config } = options
  const annotations = config.trustAnnotations && kind === 'tool' ? asObject(definition.annotations) : {}
  const listed = (patterns: readonly string[]) => patterns.some((pattern) => matches(pattern, name))
  const readOnly = kind !== 'tool' || listed(config.readTools) || annotations.readOnlyHint === true
  return {
    readOnly,
    idempotent: readOnly || listed(config.idempotentTools) || annotations.idempotentHint === true,
    ...timeLimitsOf(name, options),
  }
}

function timeLimitsOf(
  name: string,
  { server, config, timeoutMs, maxTimeoutMs }: TraitOptions,
): Pick<Traits, 'timeoutMs' | 'timeoutKey' | 'maxTimeout'> {
  const own = Object.hasOwn(config.toolTimeouts, name) ? config.toolTimeouts[name] : undefined
  const ofServer = config.timeout === undefined ? 'defaults.timeout' : `mcpServers.${server}.timeout`
  const ms = own ?? timeoutMs
  return {
    timeoutMs: ms,
    timeoutKey: own === undefined ? ofServer : `mcpServers.${server}.toolTimeouts.${name}`,
    maxTimeout: {
      // The operator may allow a call more time without progress than the maximum for calls with progress.
      ms: Math.max(ms, config.maxTimeout ?? maxTimeoutMs),
      key: config.maxTimeout === undefined ? 'defaults.maxTimeout' : `mcpServers.${server}.maxTimeout`,
    },
  }
}
