import type { Clock } from '../../core/clock.ts'
import type { Tool } from '../define-tool.ts'
import { type FetchOptions, fetchTool } from './fetch/fetch.ts'
import { hash } from './hash.ts'
import { timeTool } from './time.ts'

export interface NativeToolsOptions {
  /** Those that the configuration asks for. */
  readonly names: readonly string[]
  /** What `fetch` may do. */
  readonly fetch?: FetchOptions
  /** Tools that are made elsewhere (inference, code); what cannot work here is not among them. */
  readonly others?: readonly Tool[]
  readonly clock: Clock
}

/** The built-in tools that were asked for by name. */
export function nativeTools({ names, fetch, others = [], clock }: NativeToolsOptions): Tool[] {
  const known = [hash, timeTool(clock), ...(fetch ? [fetchTool(fetch)] : []), ...others]
  return known.filter((tool) => names.includes(tool.name))
}
