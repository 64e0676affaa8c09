export type Opener = '{' | '['

/** A place in a text that is being read leniently, and what has been found out on the way. */
export interface TextReader {
  readonly text: string
  at: number
  /** The containers that are open here, the innermost last. */
  readonly open: Opener[]
  readonly repairs: Set<Repair>
  complete: boolean
  /** What is missing, where the text ended between two values. Anything else that was cut off makes it `more`. */
  lacks: MissingEnd | undefined
  /** How many characters had to be taken for text although nothing marked them so: they may well be prose. */
  unquoted: number
  /** How often a string that never ends may still be looked at again. */
  rescues: number
  readonly budget: StepBudget
}

/** How much work reading may still do, whatever the text. */
export interface StepBudget {
  left: number
}

class NoValue extends Error {
  override readonly name = 'NoValue'
}

/** Thrown where nothing can be read as a value. Made once: hostile text would have thousands made, each with its stack. */
export const noValue = new NoValue('nothing here can be read as a value')

/** Thrown where reading takes more steps, or goes deeper, than a text of this length should: nobody tries again. */
export const tooCostly = new NoValue('this takes too long to read')

/** Values do not nest deeper than this; the stack would bear some thousands. */
export const deepest = 128

/** Looking at a string again costs up to the whole rest of the text. */
const maxRescues = 8

/** Every character may be looked at this often: as part of a value, ahead of a quote, in other attempts. */
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
  rescues: maxRescues,
  budget,
})

export function spend(budget: StepBudget, steps: number): void {
  budget.left -= steps
  if (budget.left < 0) throw tooCostly
}

/** Enters a container. */
export function enter(reader: TextReader, opener: Opener): void {
  if (reader.open.length >= deepest) throw tooCostly
  reader.open.push(opener)
  reader.at++
}

export const atEnd = (reader: TextReader): boolean => reader.at >= reader.text.length

/** The text has ended before the value has. */
export function cutOff(reader: TextReader): void {
  reader.at = reader.text.length
  reader.complete = false
  reader.lacks = 'more'
  reader.repairs.add('closed what was cut off')
}

/** The text has ended, or something else has begun, where a container should be closed or go on. */
export function unclosed(reader: TextReader, lacks: MissingEnd): void {
  reader.complete = false
  reader.lacks ??= lacks
  reader.repairs.add('closed what was cut off')
}

/** What had to be done to a text before it was JSON. */
export type Repair =
  | 'took away thinking'
  | 'took away text around it'
  | 'took away a fence'
  | 'took away special tokens'
  | 'took it out of an envelope'
  | 'chose one of several values'
  | 'decoded it once more'
  | 'replaced odd characters'
  | 'took away comments'
  | 'took away ellipses'
  | 'mended commas'
  | 'mended colons'
  | 'mended brackets'
  | 'mended quotes'
  | 'escaped quotes'
  | 'escaped control characters'
  | 'kept backslashes'
  | 'quoted keys'
  | 'quoted text'
  | 'translated words'
  | 'translated numbers'
  | 'took a call for its argument'
  | 'joined strings'
  | 'put null for a missing value'
  | 'closed what was cut off'

/** A value and how it was come by. */
export interface RepairResult {
  readonly value: unknown
  /** Empty where the text was JSON as it stood. */
  readonly repairs: readonly Repair[]
  /**
   * False where the text ended too early, so that strings may lack their end and lists their last items: fit to be
   * shown, and to be asked for again, but not to be acted upon.
   */
  readonly complete: boolean
  /** What is missing where it is not complete. */
  readonly lacks?: MissingEnd | undefined
}

/** Closing brackets alone; perhaps more, after a comma or a digit at the very end; or part of a value. */
export type MissingEnd = 'brackets' | 'maybe-more' | 'more'

/** No value could be found; the reason reads on from `it`. */
export interface RepairFailure {
  readonly unreadable: string
}
