/** What can be wrong with a log. */
export type ProblemKind =
  /** A line is no record at all. */
  | 'unreadable'
  /** A record is not what it was when it was written. */
  | 'changed'
  /** It means the same and is written otherwise. */
  | 'not_canonical'
  | 'missing'
  /** A record stands where another belongs: moved, repeated or put in. */
  | 'order'
  | 'signature'
  /** A file is not as it was left. */
  | 'segment'
  /** The end of the lane is missing. */
  | 'cut'
  /** The lane is behind its high-water mark. */
  | 'rolled_back'
  | 'head'
  /** Toolway itself found something when it started, and wrote it down. */
  | 'found_before'
  | 'lane'
  | 'key'

/** Something wrong, where, in a sentence. */
export interface VerifyProblem {
  readonly kind: ProblemKind
  readonly lane?: string
  readonly file?: string
  /** Counted from 1. */
  readonly line?: number
  readonly seq?: number
  readonly message: string
}

/** Collects problems up to a number beyond which nobody reads them. */
export function createProblems(most = 1000): {
  readonly list: readonly VerifyProblem[]
  readonly count: number
  add(problem: VerifyProblem): void
} {
  const list: VerifyProblem[] = []
  let count = 0
  return {
    list,
    get count() {
      return count
    },
    add: (problem) => {
      count++
      if (list.length < most) list.push(problem)
    },
  }
}
