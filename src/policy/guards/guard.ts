import type { ServerConfig } from '../../config/schema.ts'
import type { ToolwayError } from '../../core/errors.ts'

/** One guard, as a server's configuration has it. */
export type GuardConfig = ServerConfig['guards'][number]

/** A text that a guard looks at, and the argument it came in. */
export interface Guarded {
  readonly at: string
  readonly text: string
}

/** Settles if every text is harmless, throws what its `Refuse` made otherwise. */
export type Guard = (values: readonly Guarded[]) => Promise<void>

/** Makes the error of one guard. The reason goes on from "The argument … ", ends without a full stop, and never repeats the value. */
export type Refuse = (at: string, reason: string) => ToolwayError
