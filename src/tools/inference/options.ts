import type { Config } from '../../config/schema.ts'
import type { Clock } from '../../core/clock.ts'
import type { Log } from '../../core/log.ts'
import type { Vet } from '../native/fetch/vet.ts'
import type { LanguageModel } from './language-model.ts'

type Schema = Readonly<Record<string, unknown>>

export type Read = { readonly value: unknown } | { readonly problem: string }

export interface InferenceOptions {
  readonly config: Pick<Config, 'models'> & {
    readonly chat: Pick<Config['chat'], 'model'>
    readonly native: Pick<Config['native'], 'inference'>
  }
  /** The language models that are not disabled, by their names in the configuration. */
  readonly models: ReadonlyMap<string, LanguageModel>
  /**
   * Makes a value of what a model wrote under a schema, or says what is wrong with it. `restore` makes of one that fits
   * the schema as it was sent one that fits it as it was asked for. Plain JSON, if absent.
   */
  read?(text: string, schema: Schema, restore: (value: unknown) => unknown): Promise<Read>
  /** Says which images may be fetched, and from which addresses. */
  readonly vet: Vet
  readonly clock: Clock
  readonly log: Log
}
