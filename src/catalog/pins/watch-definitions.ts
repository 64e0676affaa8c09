import type { Entry } from '../../core/entry.ts'
import type { Source } from '../../core/source.ts'
import type { Pins } from './pins.ts'

/** As many as are looked at between two turns of others. */
const chunk = 100

/** Looks at the definitions of a source whenever they may have changed, whether or not anybody lists them. */
export function watchDefinitions(source: Pick<Source, 'entries' | 'onChange'>, pins: Pick<Pins, 'check'>): Disposable {
  let left: Entry[] = []
  let looking = false

  const look = () => {
    for (const entry of left.splice(0, chunk)) pins.check(entry)
    looking = left.length > 0
    if (looking) setImmediate(look)
  }

  return source.onChange(() => {
    left = [...source.entries()]
    if (looking) return
    looking = true
    setImmediate(look)
  })
}
