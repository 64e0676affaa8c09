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
export interface Repaired {
  readonly value: unknown
  /** Empty where the text was JSON as it stood. */
  readonly repairs: readonly Repair[]
  /**
   * False where the text ended too early, so that strings may lack their end and lists their last items: fit to be
   * shown, and to be asked for again, but not to be acted upon.
   */
  readonly complete: boolean
  /** What is missing where it is not complete. */
  readonly lacks?: Lack | undefined
}

/** Closing brackets alone; perhaps more, after a comma or a digit at the very end; or part of a value. */
export type Lack = 'brackets' | 'maybe-more' | 'more'

/** No value could be found; the reason reads on from `it`. */
export interface Unreadable {
  readonly unreadable: string
}
