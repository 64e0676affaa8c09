import { mayHideMembers, pastComment, pastEllipsis, pastSpaces, signAt } from './scan.ts'

export type Opener = '{' | '['

/** How many more steps may be spent on the text. */
export interface StepBudget {
  left: number
}

class NoValue extends Error {
  override readonly name = 'NoValue'
}

/** Thrown if there is no value here. One shared error, because hostile text would otherwise create thousands. */
export const noValue = new NoValue('contains no readable value')

/** Thrown when the step or depth limit is exceeded; ends all attempts. */
export const tooCostly = new NoValue('takes too long to read')

/** Maximum nesting, far below the stack limit. */
export const maxRepairDepth = 128

/** How many strings may be reread. Each reread may scan all the remaining text. */
const maxRescues = 8

/** How many times each character may be visited on average: as part of a value, as lookahead and in failed attempts. */
const stepsPerCharacter = 16

export const budgetFor = (text: string): StepBudget => ({ left: 1024 + stepsPerCharacter * text.length })

/** The position of the lenient parser, and what it has found so far. */
export class TextReader {
  readonly text: string
  at: number
  readonly budget: StepBudget
  /** Open containers, innermost last. */
  readonly open: Opener[] = []
  readonly repairs = new Set<Repair>()
  /** What is missing at the end of the text (see `MissingEnd`); undefined if nothing is missing. */
  lacks: MissingEnd | undefined
  /** Number of characters that were read as unquoted text; they may be prose. */
  unquoted = 0
  /** Whether the end of a string was guessed, because quotes are missing or not escaped. */
  guessed = false
  /** Whether the structure is damaged: commas, colons, brackets or values are missing, or text is not quoted. */
  damaged = false
  /** Whether a string may well end elsewhere. */
  uncertain = false
  /** How many more unterminated strings may be reread. */
  rescues = maxRescues

  constructor(text: string, at: number, budget: StepBudget) {
    this.text = text
    this.at = at
    this.budget = budget
  }

  get isAtEnd(): boolean {
    return this.at >= this.text.length
  }

  /** The character here (see `signAt`). */
  get sign(): string {
    return signAt(this.text, this.at)
  }

  spend(steps: number): void {
    this.budget.left -= steps
    if (this.budget.left < 0) throw tooCostly
  }

  enter(opener: Opener): void {
    if (this.open.length >= maxRepairDepth) throw tooCostly
    this.open.push(opener)
    this.at++
  }

  /** Skips whitespace, comments and ellipses. */
  skipGap(): void {
    const { text, at: from } = this
    for (;;) {
      const spaced = pastSpaces(text, this.at)
      const past = pastComment(text, spaced)
      if (past > spaced) {
        this.repairs.add('removed comments')
        if (mayHideMembers(text, spaced, past)) this.uncertain = true
      }
      const dots = pastEllipsis(text, past)
      if (dots > past) this.repairs.add('removed ellipses')
      if (dots === this.at) break
      this.at = dots
    }
    this.spend(1 + this.at - from)
  }

  /** Records that the text ended inside a value. */
  cutOff(): void {
    this.at = this.text.length
    this.lacks = 'more'
    this.repairs.add('closed a truncated value')
  }

  /** Records that a container was not closed. */
  noteUnclosed(lacks: MissingEnd): void {
    if (!this.isAtEnd) this.damaged = true
    this.lacks ??= lacks
    this.repairs.add('closed a truncated value')
  }

  /** Records a repair of damaged structure. */
  damage(repair: Repair): void {
    this.repairs.add(repair)
    this.damaged = true
  }

  /** Records that the end of a string was guessed. */
  guess(repair: Repair): void {
    this.repairs.add(repair)
    this.guessed = true
  }
}

export type Repair =
  | 'removed thinking'
  | 'removed surrounding text'
  | 'removed a code fence'
  | 'removed special tokens'
  | 'unwrapped an envelope'
  | 'chose one of several values'
  | 'decoded it again'
  | 'replaced unusual characters'
  | 'removed comments'
  | 'removed ellipses'
  | 'fixed commas'
  | 'fixed colons'
  | 'fixed brackets'
  | 'fixed quotes'
  | 'escaped quotes'
  | 'escaped control characters'
  | 'kept backslashes'
  | 'quoted keys'
  | 'quoted text'
  | 'translated words'
  | 'translated numbers'
  | 'replaced a call with its argument'
  | 'joined strings'
  | 'used null for a missing value'
  | 'closed a truncated value'

/** A value, and how it was obtained. */
export interface RepairResult {
  readonly value: unknown
  /** Empty if the text was valid JSON. */
  readonly repairs: readonly Repair[]
  /** False if the text ended too early. The value may then be incomplete: display it, but do not act upon it. */
  readonly complete: boolean
  /** What is missing if `complete` is false. */
  readonly lacks?: MissingEnd | undefined
  /**
   * Why the value may not be what the model meant; completes "The text …". Do not act upon such a value: a string may
   * have been cut at a quote inside it, or may contain members that follow it.
   */
  readonly ambiguous?: string | undefined
  /** All values with the expected shape, in order, if the text contains more than one. */
  readonly several?: readonly RepairResult[] | undefined
}

/** What truncated text lacks: only brackets, possibly more (after a comma or a final digit), or part of a value. */
export type MissingEnd = 'brackets' | 'maybe-more' | 'more'

/** No value was found. The reason completes "The text …", such as "is empty". */
export interface RepairFailure {
  readonly unreadable: string
}
