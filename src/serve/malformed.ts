import type { Access } from '../core/access.ts'
import type { Caller } from '../core/call.ts'
import { ToolwayError } from '../core/errors.ts'
import { ProtocolError } from './errors.ts'
import { Refusal, rpc } from './refusal.ts'

/** Whoever sent a request, as far as that is known. */
type Sender = { readonly [Key in 'principal' | 'address']?: Caller[Key] | undefined }

/** Writes down a message that is not one of the protocol (F11): it never becomes a call. */
export function recordMalformed(access: Pick<Access, 'rejected'>, sender: Sender, detail: string): void {
  const { principal, address } = sender
  access.rejected({
    code: 'INVALID_ARGUMENTS',
    malformed: true,
    detail,
    ...(principal !== undefined && { principal }),
    ...(address !== undefined && { address }),
  })
}

/** Whether a door other than MCP's could not read what it was sent. */
export const isUnreadable = ({ status }: Refusal): boolean => status === 400 || status === 413 || status === 415

/** The same for what was thrown at a request, if it means that the request breaks the protocol. */
export function recordIfMalformed(access: Pick<Access, 'rejected'>, sender: Sender, thrown: unknown): void {
  const cause = thrown instanceof ToolwayError ? thrown.cause : thrown
  if (cause instanceof ProtocolError || (cause instanceof Refusal && isMalformed(cause))) {
    recordMalformed(access, sender, cause.message)
  }
}

/** What has one of our codes is a refusal of another kind, which is written down where it is decided. */
const isMalformed = ({ status, code, details: { data } }: Refusal): boolean =>
  [400, 404, 406, 413, 415].includes(status) &&
  code !== rpc.session &&
  (data as { code?: unknown } | undefined)?.code === undefined
