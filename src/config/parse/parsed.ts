import type { ConfigTree, Path } from '../tree.ts'

/** What a parser of one syntax answers: the document (nothing where it is empty) and what is wrong with it. */
export interface Parsed {
  readonly tree?: ConfigTree
  readonly errors: readonly SyntaxFault[]
}

export interface SyntaxFault {
  readonly message: string
  readonly offset: number
  readonly key?: string
}

/** Deeper than any real configuration, and shallow enough for every recursion that follows. */
const maxDepth = 64
/** Aliases can make a short YAML file unfold without end. */
const maxParts = 200_000

/** A document that parses but is not taken. */
export class RejectedDocument extends Error {
  readonly offset: number

  constructor(message: string, offset: number) {
    super(message)
    this.offset = offset
  }
}

/** Watches a tree grow, part by part, and stops what would harm the reader. */
export function createBounds(): (path: Path, offset: number) => void {
  let parts = 0
  return (path, offset) => {
    if (path.length > maxDepth) throw new RejectedDocument(`nested deeper than ${maxDepth} levels`, offset)
    if (++parts > maxParts) throw new RejectedDocument(`expands to more than ${maxParts} values`, offset)
    if (path.at(-1) === '__proto__') throw new RejectedDocument('__proto__ is not allowed as a key', offset)
  }
}
