import { type Capabilities, profileOf } from '../../core/capabilities.ts'
import type { Line } from './managed-connection.ts'

/** Lines that wait for the caller they will belong to, so that being alone on a line is not slow. */
export interface Spares {
  /** A line for one caller alone. */
  take(capabilities: Capabilities): Line
  /** A line to look at the server through; it stays a spare. */
  peek(capabilities: Capabilities): Line
  /** It has found another use. */
  forget(line: Line): void
  readonly all: Iterable<Line>
}

const never = new AbortController().signal

export function createSpares(count: number, create: (capabilities: Capabilities) => Line): Spares {
  const waiting = new Map<string, Line[]>()

  const of = (capabilities: Capabilities): Line[] => {
    const profile = profileOf(capabilities)
    const lines = waiting.get(profile) ?? []
    waiting.set(profile, lines)
    return lines
  }

  return {
    take(capabilities) {
      const lines = of(capabilities)
      // Not one that is held to follow or list something, or whose server has asked for roots when nobody could tell.
      const free = lines.findIndex((line) => !line.busy && !line.current?.connection.unheard)
      const taken = (free < 0 ? undefined : lines.splice(free, 1)[0]) ?? create(capabilities)
      while (lines.length < count) {
        const spare = create(capabilities)
        lines.push(spare)
        // One that does not open now is tried again by whoever takes it.
        spare.open(never).catch(() => {})
      }
      return taken
    },
    peek(capabilities) {
      const lines = of(capabilities)
      lines[0] ??= create(capabilities)
      return lines[0]
    },
    forget(line) {
      for (const lines of waiting.values()) if (lines.includes(line)) lines.splice(lines.indexOf(line), 1)
    },
    get all() {
      return [...waiting.values()].flat()
    },
  }
}
