import type { ErrorCode } from '../../src/core/errors.ts'

/** What the page of one code says. Numbers, status and exit code come from the code itself. */
export interface PageText {
  /** What happened, in one line for the index. */
  readonly happened: string
  /** What to do, in one line for the index. */
  readonly remedy: string
  /** The most likely cause first. */
  readonly causes: readonly string[]
  /** What a model that gets this error should do. */
  readonly model: readonly string[]
  /** What an operator can do. */
  readonly operator: readonly string[]
  /** Related settings; `*` stands for a name. */
  readonly keys: readonly string[]
  /** Commands that help, as they are typed. */
  readonly commands: readonly string[]
  readonly related: readonly ErrorCode[]
}
