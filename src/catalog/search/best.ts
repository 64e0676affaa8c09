/** The first `limit` of some numbers by an order, in that order, without sorting all the others. */
export function best(
  candidates: Iterable<number>,
  limit: number,
  compare: (a: number, b: number) => number,
): readonly number[] {
  // A heap with the worst of the kept at its top: most candidates are turned away after one comparison.
  const kept: number[] = []
  for (const candidate of candidates) {
    if (kept.length < limit) rise(kept, candidate, compare)
    else if (limit > 0 && compare(candidate, kept[0] as number) < 0) sink(kept, candidate, compare)
  }
  return kept.sort(compare)
}

function rise(heap: number[], value: number, compare: (a: number, b: number) => number): void {
  let at = heap.length
  while (at > 0) {
    const parent = (at - 1) >> 1
    if (compare(heap[parent] as number, value) >= 0) break
    heap[at] = heap[parent] as number
    at = parent
  }
  heap[at] = value
}

/** Puts a value in the place of the top. */
function sink(heap: number[], value: number, compare: (a: number, b: number) => number): void {
  let at = 0
  for (;;) {
    let child = 2 * at + 1
    if (child >= heap.length) break
    if (child + 1 < heap.length && compare(heap[child + 1] as number, heap[child] as number) > 0) child++
    if (compare(value, heap[child] as number) >= 0) break
    heap[at] = heap[child] as number
    at = child
  }
  heap[at] = value
}
