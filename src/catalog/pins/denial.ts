import type { Denial } from '../../core/decision.ts'
import { visible } from '../scan/visible.ts'
import type { PinState } from './state.ts'

/** Why a definition may not be used, and what an operator can do about it. */
export function denialFor({ label, condition, changed, flags }: PinState): Denial {
  const shown = visible(label)
  const reason =
    condition === 'changed'
      ? `its ${listed(changed)} changed since it was approved`
      : condition === 'unapproved'
        ? 'nobody has approved it since the pins of its server were lost'
        : `its definition holds ${listed(flags)}`
  return {
    allowed: false,
    code: 'QUARANTINED',
    rule: 'policy.pins',
    reason: `${shown} is quarantined: ${reason}. An operator can look at it with \`toolway pins show ${shown}\` and let it through with \`toolway pins approve ${shown}\`.`,
  }
}

/** The same for a name that there is no room to pin. */
export const denialForCrowd = (denial: Denial, label: string): Denial => ({
  ...denial,
  reason: `${visible(label)} is quarantined: its server has offered more names than can be pinned. An operator can narrow them down with tools.include of this server.`,
})

const listed = (words: readonly string[]): string => {
  const shown = words.slice(0, 4).map((word) => visible(word).slice(0, 60))
  if (shown.length < 2) return shown[0] ?? 'definition'
  return `${shown.slice(0, -1).join(', ')} and ${shown.at(-1)}`
}
