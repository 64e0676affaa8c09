import type { Clock } from '../../core/clock.ts'
import type { Tool } from '../define.ts'
import { hash } from './hash.ts'
import { timeTool } from './time.ts'

/** The built-in tools that were asked for by name. Names that are not known (yet) are passed over: the configuration tells. */
export function nativeTools({ names, clock }: { names: readonly string[]; clock: Clock }): Tool[] {
  const known = [hash, timeTool(clock)]
  return known.filter((tool) => names.includes(tool.name))
}
