/** Spans that wait to be sent, bounded by what they weigh. Those of one call come and go together. */
export interface Queue {
  readonly size: number
  /** False where there is no room. */
  add(spans: readonly string[]): boolean
  /** Takes the oldest, no more than these many spans unless one call alone has more. */
  take(most: number): string[]
}

export function createQueue(maxCharacters: number): Queue {
  let groups: (readonly string[])[] = []
  let size = 0
  let weight = 0
  return {
    get size() {
      return size
    },
    add(spans) {
      const more = weightOf(spans)
      if (weight + more > maxCharacters) return false
      groups.push(spans)
      size += spans.length
      weight += more
      return true
    },
    take(most) {
      const taken: string[] = []
      let count = 0
      for (const group of groups) {
        if (count > 0 && taken.length + group.length > most) break
        taken.push(...group)
        count++
      }
      groups = groups.slice(count)
      size -= taken.length
      weight -= weightOf(taken)
      return taken
    },
  }
}

const weightOf = (spans: readonly string[]): number => spans.reduce((sum, { length }) => sum + length, 0)
