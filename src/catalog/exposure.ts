import type { Served } from '../core/access.ts'
import { type Caller, callerKey } from '../core/call.ts'
import type { Clock } from '../core/clock.ts'
import type { Exposure, ExposureSetting } from '../core/exposure.ts'
import { knownClient } from '../core/known-clients.ts'
import { tokenCost } from '../core/tokens.ts'
import { setBounded } from '../lib/memoize.ts'

/** How `auto` chooses a mode (V14). */
export interface AutoExposure {
  /** All tools are listed while their definitions take fewer tokens than this. */
  readonly threshold: number
  /** The mode for longer lists. */
  readonly above: 'meta' | 'code'
}

/** As configured by default. */
const defaultAuto: AutoExposure = { threshold: 10_000, above: 'meta' }

/** How many tokens the meta-tools may take besides all tools; if they take more, they are left out. */
const metaRoom = 2_000

/** What a client would be shown: all tools that it may use, without and with the meta-tools. */
type ShownTools = Readonly<Record<'direct' | 'both', readonly Served[]>>

/** The mode for a setting, given the tools that a client would be shown. */
export function exposureFor(setting: ExposureSetting, { direct, both }: ShownTools, auto = defaultAuto): Exposure {
  if (setting !== 'auto') return setting
  if (tokenCost(direct) >= auto.threshold) return auto.above
  return tokenCost(both) < auto.threshold + metaRoom ? 'both' : 'direct'
}

/** How many callers' modes are remembered. */
const maxChosen = 10_000

/** How long a mode stays after its last use. Clients without sessions begin new conversations without saying so. */
const idleMs = 3_600_000

/** The modes that `auto` has chosen: within a session, a list does not change from tools to meta-tools, or back. */
export class ChosenExposures {
  readonly #clock: Pick<Clock, 'monotonic'>
  readonly #chosen = new Map<string, { readonly mode: Exposure; usedAt: number }>()

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.#clock = clock
  }

  /** `isComplete`: whether all servers have listed their tools. A mode that is chosen before that may change. */
  choose(caller: Caller, tools: ShownTools, auto: AutoExposure | undefined, isComplete: boolean): Exposure {
    if (knownClient(caller.client).searchesTools) return 'direct'
    const key = callerKey(caller)
    const now = this.#clock.monotonic()
    const known = this.#chosen.get(key)
    if (known && now - known.usedAt < idleMs) {
      known.usedAt = now
      return known.mode
    }
    const mode = exposureFor('auto', tools, auto)
    if (isComplete) setBounded(this.#chosen, key, { mode, usedAt: now }, maxChosen)
    return mode
  }
}
