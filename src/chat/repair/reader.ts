export type Opener = '{' | '['

/** The position of the lenient parser, and what it has found so far. */
export interface TextReader {
  readonly text: string
  at: number
  /** Open containers, innermost last. */
  readonly open: Opener[]
  readonly repairs: Set<Repair>
  complete: boolean
  /** What is missing at the end of the text (see `MissingEnd`); undefined if nothing is missing. */
  lacks: MissingEnd | undefined
  /** Number of characters that were read as unquoted text; they may be prose. */
  unquoted: number
  /** Whether the end of a string was guessed, because quotes are missing or not escaped. */
  guessed: boolean
  /** Whether the structure is damaged: commas, colons, brackets or values are missing, or text is not quoted. */
  damaged: boolean
  /** Whether a string may well end elsewhere. */
  uncertain: boolean
  /** How many more unterminated strings may be reread. */
  rescues: number
  readonly budget: StepBudget
}

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

export const readerAt = (text: string, at: number, budget: StepBudget): TextReader => ({
  text,
  at,
  open: [],
  repairs: new Set(),
  complete: true,
  lacks: undefined,
  unquoted: 0,
  guessed: false,
  damaged: false,
  uncertain: false,
  rescues: maxRescues,
  budget,
})

export function spendSteps(budget: StepBudget, steps: number): void {
  budget.left -= steps
  if (budget.left < 0) throw tooCostly
}

export function enter(reader: TextReader, opener: Opener): void {
  if (reader.open.length >= maxRepairDepth) throw tooCostly
  reader.open.push(opener)
  reader.at++
}

export const atEnd = (reader: TextReader): boolean => reader.at >= reader.text.length

/** Records that the text ended inside a value. */
export function cutOff(reader: TextReader): void {
  reader.at = reader.text.length
  reader.complete = false
  reader.lacks = 'more'
  reader.repairs.add('closed a truncated value')
}

/** Records that a container was not closed. */
export function noteUnclosed(reader: TextReader, lacks: MissingEnd): void {
  reader.complete = false
  if (!atEnd(reader)) reader.damaged = true
  reader.lacks ??= lacks
  reader.repairs.add('closed a truncated value')
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
