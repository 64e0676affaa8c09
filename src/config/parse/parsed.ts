import type { Tree } from '../tree.ts'

/** What a parser of one syntax answers: the document (nothing where it is empty) and what is wrong with it. */
export interface Parsed {
  readonly tree?: Tree
  readonly errors: readonly SyntaxFault[]
}

export interface SyntaxFault {
  readonly message: string
  readonly offset: number
  readonly key?: string
}
