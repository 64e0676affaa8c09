/** What one program may ask of its host. The host counts, whatever the sandbox counts for itself. */
export interface CodeLimits {
  readonly calls: number
  readonly inFlight: number
  /** Characters of one question, arguments included. */
  readonly question: number
  /** Characters of all questions that are not answered yet. */
  readonly open: number
  /** Characters of one answer. */
  readonly answer: number
}

export const codeLimits: CodeLimits = {
  calls: 200,
  inFlight: 8,
  question: 1024 * 1024,
  open: 8 * 1024 * 1024,
  answer: 1024 * 1024,
}

/** Of what a program said and gave, its calls and all else: what a model is shown in characters. */
export const maxAnswer = 24_000
