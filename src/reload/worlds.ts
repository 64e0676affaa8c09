import type { Clock } from '../core/clock.ts'

/** Worlds that follow one another: what runs in one ends there, whatever comes after it. */
export interface Worlds<World> extends AsyncDisposable {
  /** The one that whatever begins now begins in. */
  readonly present: World
  /** All that are not over: the present one first. */
  readonly living: readonly World[]
  /** Does something in the present world, which is not ended before that is done. */
  within<T>(work: (world: World) => Promise<T>): Promise<T>
  /** Another one is the present one from now on. */
  follow(next: World): void
}

interface Place<World> {
  readonly world: World
  running: number
  /** No longer the present one, and since long enough. */
  old: boolean
}

/** What has been looked up in a world but not begun yet needs a moment more. */
const graceMs = 1_000

/** Keeps a world until nothing runs in it any more, and ends it then. */
export function createWorlds<World>(options: {
  readonly first: World
  /** Called once for each world, when it is no longer among the living ones. */
  end(world: World): Promise<void>
  readonly clock: Clock
}): Worlds<World> {
  let present: Place<World> = { world: options.first, running: 0, old: false }
  let places = [present]
  const ending = new Set<Promise<void>>()
  const timers = new Set<Disposable>()

  const end = (place: Place<World>) => {
    places = places.filter((other) => other !== place)
    const done = options.end(place.world).finally(() => ending.delete(done))
    ending.add(done)
  }

  const leave = (place: Place<World>) => {
    place.running--
    if (place.old && place.running === 0 && places.includes(place)) end(place)
  }

  return {
    get present() {
      return present.world
    },
    get living() {
      return places.map(({ world }) => world)
    },
    async within(work) {
      const place = present
      place.running++
      try {
        return await work(place.world)
      } finally {
        leave(place)
      }
    },
    follow(next) {
      const before = present
      present = { world: next, running: 0, old: false }
      places = [present, ...places]
      const timer = options.clock.after(graceMs, () => {
        timers.delete(timer)
        before.old = true
        if (before.running === 0) end(before)
      })
      timers.add(timer)
    },
    async [Symbol.asyncDispose]() {
      for (const timer of timers) timer[Symbol.dispose]()
      for (const place of places) end(place)
      await Promise.all(ending)
    },
  }
}
