import type { ErrorCode } from '../../src/core/errors.ts'

/** What the page of one code says. Numbers, status and exit code come from the code itself. */
export interface PageText {
  /** What happened, in one line for the index. */
  readonly happened: string
  /** What to do, in one line for the index. */
  readonly remedy: string
  /** How it comes about, the most likely cause first. */
  readonly causes: readonly string[]
  /** What a model that gets this answer should do. */
  readonly model: readonly string[]
  /** What whoever runs the gateway can do. */
  readonly operator: readonly string[]
  /** Keys of the configuration that have a say in it; `*` stands for a name. */
  readonly keys: readonly string[]
  /** Commands that help, as they are typed. */
  readonly commands: readonly string[]
  readonly related: readonly ErrorCode[]
}
