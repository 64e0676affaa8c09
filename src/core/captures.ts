import type { Kind } from './entry.ts'

/** A captured JSON value as text, redacted. If it was cut, the text is only the beginning of the JSON. */
export interface CapturedText {
  readonly text: string
  /** The size of the original in bytes. */
  readonly bytes: number
  readonly truncated: boolean
  /** Whether something in it was redacted. If neither this nor `truncated`, the text has the caller's own bytes. */
  readonly redacted: boolean
}

export interface CapturedProgress {
  /** The time since the start of the call. */
  readonly ms: number
  readonly progress: number | null
  readonly total: number | null
  readonly message: string | null
}

/** The content of a call: what was sent and received. Everything in it is redacted, except names needed to repeat it. */
export interface CapturedCall {
  readonly id: string
  /** When the call began, in milliseconds since the epoch. */
  readonly at: number
  /** Whose share of the store the call uses. */
  readonly principal: string
  readonly agent: string
  readonly kind: Kind
  readonly server: string
  readonly name: string
  readonly uri: string | undefined
  readonly arguments: CapturedText
  /** Undefined while the call is running, and if it failed. */
  readonly result: CapturedText | undefined
  readonly error: { readonly code: string; readonly message: string } | undefined
  readonly progress: readonly CapturedProgress[]
  readonly droppedProgress: number
}

/** Keeps captured calls, bounded per caller and in all, and by age. The oldest are dropped first. */
export interface CaptureStore {
  /** Adds a call, or replaces the one with the same id. */
  put(call: CapturedCall): void
  find(id: string): CapturedCall | undefined
}
