import type { ConfigTree, Path } from '../tree.ts'

/** The result of a parser. `tree` is missing if the document is empty or invalid. */
export interface Parsed {
  readonly tree?: ConfigTree
  readonly errors: readonly SyntaxFault[]
}

export interface SyntaxFault {
  readonly message: string
  readonly offset: number
  readonly key?: string
}

/** Maximum nesting depth. Real configurations are shallower, and recursion is safe at this depth. */
const maxDepth = 64
/** Maximum number of values. YAML aliases can expand a short file exponentially. */
const maxParts = 200_000

/** The error for a document that can be parsed, but exceeds a limit or uses an unsupported feature. */
export class RejectedDocument extends Error {
  readonly offset: number

  constructor(message: string, offset: number) {
    super(message)
    this.offset = offset
  }
}

/** Returns a function that checks the limits for each part while a tree is built. */
export function createBounds(): (path: Path, offset: number) => void {
  let parts = 0
  return (path, offset) => {
    if (path.length > maxDepth) throw new RejectedDocument(`nested deeper than ${maxDepth} levels`, offset)
    if (++parts > maxParts) throw new RejectedDocument(`expands to more than ${maxParts} values`, offset)
    if (path.at(-1) === '__proto__') throw new RejectedDocument('__proto__ is not allowed as a key', offset)
  }
}
