import type { Caller } from '../../../core/call.ts'
import type { ErrorCode, ErrorDetails } from '../../../core/errors.ts'
import type { ResultBody } from '../../../core/result.ts'

/** What the gateway says to a child. All of it is JSON. */
export type ToChild =
  | { readonly kind: 'load'; readonly file: string; readonly library: string }
  | {
      readonly kind: 'call'
      readonly id: number
      readonly tool: string
      readonly callId: string
      readonly arguments: Readonly<Record<string, unknown>>
      readonly meta: Readonly<Record<string, unknown>>
      readonly caller: Omit<Caller, 'peer'>
    }
  | { readonly kind: 'cancel'; readonly id: number }

/** What a child says to the gateway. */
export type FromChild =
  | { readonly kind: 'ready' }
  | { readonly kind: 'broken'; readonly problem: string }
  | { readonly kind: 'result'; readonly id: number; readonly body: ResultBody }
  | { readonly kind: 'failure'; readonly id: number; readonly error: SentError }

/** An error of ours on its way between processes; the cause is for the log alone. */
export interface SentError {
  readonly code: ErrorCode
  readonly message: string
  readonly details: Omit<ErrorDetails, 'cause'>
  readonly cause?: string
}

/** Whether a message is one of ours: the plugin has the same channel, and may say anything on it. */
export function isFromChild(message: unknown): message is FromChild {
  if (!isObject(message)) return false
  const { kind, problem, id, body, error } = message
  if (kind === 'ready') return true
  if (kind === 'broken') return typeof problem === 'string'
  if (typeof id !== 'number') return false
  return kind === 'result' ? isObject(body) : kind === 'failure' && isError(error)
}

const isError = (error: unknown): boolean =>
  isObject(error) && typeof error.code === 'string' && typeof error.message === 'string'

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null
