import type { Access } from '../core/access.ts'
import type { ApprovalNeed } from '../core/approval.ts'
import type { Call, Caller } from '../core/call.ts'
import type { ToolwayError } from '../core/errors.ts'
import type { ServerGuards } from '../pipeline/validate.ts'
import type { Policy } from '../policy/decide.ts'
import type { Tool } from '../tools/define-tool.ts'
import type { GatewayStatus, StatusRefusal } from '../tools/meta/index.ts'
import type { ProcessState } from './process-state.ts'

/** Everything needed to build a generation: the process state and access to the current generation. */
export interface GenerationContext extends ProcessState {
  readonly access: Access
  servedUris(call: Call): (uri: string) => string
  /** Removes the current configuration's secrets from text. */
  redact(text: string): string
  policy(): Policy
  guards(): ServerGuards
  /** Whether the current rules require a person to approve a call. */
  approvalNeed(call: Call): ApprovalNeed | undefined
  /** Whether a principal's API key was revoked, or has expired. */
  isRevoked(principal: string): boolean
  /** Why the current configuration does not allow calls to a server; undefined if it does. */
  unserved(server: string): ToolwayError | undefined
  /** The gateway's state, or the rule that hides it from the caller. */
  status(caller: Caller): GatewayStatus | StatusRefusal
  /** Tools registered by the embedding program. They are served with the native ones. */
  readonly tools: readonly Tool[]
  /** Writes to standard output. Undefined if standard output is the connection to a client. */
  readonly print: ((text: string) => void) | undefined
}
