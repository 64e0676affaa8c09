import type { Scenario } from '../scenario.ts'
import { batch } from './batch.ts'
import { cache } from './cache.ts'
import { calls } from './calls.ts'
import { catalogSize } from './catalog-size.ts'
import { coldStart } from './cold-start.ts'
import { hanging } from './hanging.ts'
import { large } from './large.ts'
import { leak } from './leak.ts'
import { list } from './list.ts'
import { memory } from './memory.ts'
import { metaTools } from './meta-tools.ts'

/** Every scenario, in the order in which they run. */
export const scenarios: readonly Scenario[] = [
  calls,
  large,
  catalogSize,
  list,
  hanging,
  cache,
  batch,
  metaTools,
  memory,
  coldStart,
  leak,
]
