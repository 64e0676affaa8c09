import { ends, voids } from './elements.ts'

/** An element that has begun, and what is to be done at its end. */
export interface OpenElement {
  readonly name: string
  end?(): void
}

/** The elements around the present place. A page can close them in any order, or never. */
export interface OpenElements {
  /** Closes what the opening tag of this name closes without a word. */
  before(name: string): void
  push(element: OpenElement): void
  /** Closes the innermost element of this name and all in it; nothing where none is open. */
  close(name: string): void
  closeAll(): void
}

/** Deeper pages exist to exhaust those who read them. */
const deepest = 256

export function createOpenElements(): OpenElements {
  const open: OpenElement[] = []
  const counts = new Map<string, number>()
  const count = (name: string, by: number) => counts.set(name, (counts.get(name) ?? 0) + by)

  const pop = (): OpenElement | undefined => {
    const element = open.pop()
    if (element) count(element.name, -1)
    element?.end?.()
    return element
  }

  const close = (name: string): void => {
    if ((counts.get(name) ?? 0) === 0) return
    while (pop()?.name !== name);
  }

  return {
    before(name) {
      const rule = ends[name]
      if (!rule) return
      for (let at = open.length - 1; at >= 0; at--) {
        const found = open[at]?.name ?? ''
        if (rule.within.has(found)) return
        if (rule.closed.has(found)) return close(found)
      }
    },
    push(element) {
      if (voids.has(element.name) || open.length >= deepest) return element.end?.()
      open.push(element)
      count(element.name, 1)
    },
    close,
    closeAll() {
      while (pop());
    },
  }
}
