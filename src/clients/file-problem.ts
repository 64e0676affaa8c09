/** A file that cannot be read, edited or put back as it is; nothing was lost. The sentence says what to do. */
export class FileProblem extends Error {
  override readonly name = 'FileProblem'
  readonly hint: string | undefined

  constructor(message: string, hint?: string) {
    super(message)
    this.hint = hint
  }
}
