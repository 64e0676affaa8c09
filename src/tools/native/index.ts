import type { Clock } from '../../core/clock.ts'
import type { Tool } from '../define-tool.ts'
import { type FetchOptions, fetchTool } from './fetch/fetch.ts'
import { hashTool } from './hash.ts'
import { timeTool } from './time.ts'

export interface NativeToolsOptions {
  readonly names: readonly string[]
  readonly fetch?: FetchOptions
  /** Tools from other folders (inference, code); excludes those that cannot run on this machine. */
  readonly others?: readonly Tool[]
  readonly clock: Clock
}

export function nativeTools({ names, fetch, others = [], clock }: NativeToolsOptions): Tool[] {
  const known = [hashTool, timeTool(clock), ...(fetch ? [fetchTool(fetch)] : []), ...others]
  return known.filter((tool) => names.includes(tool.name))
}
