import type { ServerConfig } from '../config/schema.ts'
import type { Definition, Kind, Traits } from '../core/entry.ts'
import { matches } from '../core/wildcard.ts'
import { asObject } from './introduction.ts'

/** Whether a read-only server has tools, none of which is known to be a read: none of them can be used then. */
export function hidesEveryTool(config: ServerConfig, tools: readonly Definition[]): boolean {
  if (!config.readOnly || tools.length === 0) return false
  return !tools.some((tool) => traitsOf('tool', String(tool.name), tool, { config, timeoutMs: 0 }).readOnly)
}

/** The operator's word counts; the server's own annotations only where the operator trusts them. */
export function traitsOf(
  kind: Kind,
  name: string,
  definition: Definition,
  { config, timeoutMs }: { readonly config: ServerConfig; readonly timeoutMs: number },
): Traits {
  const annotations = config.trustAnnotations && kind === 'tool' ? asObject(definition.annotations) : {}
  const listed = (patterns: readonly string[]) => patterns.some((pattern) => matches(pattern, name))
  const readOnly = kind !== 'tool' || listed(config.readTools) || annotations.readOnlyHint === true
  return {
    readOnly,
    idempotent: readOnly || listed(config.idempotentTools) || annotations.idempotentHint === true,
    timeoutMs: config.toolTimeouts[name] ?? timeoutMs,
  }
}
