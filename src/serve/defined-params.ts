import type { Log } from '../core/log.ts'
import { AmbiguousMember, definedMembers, type Scope } from '../wire/check-members.ts'
import { fromClients } from '../wire/defined-members.ts'
import { ProtocolError } from './errors.ts'
import type { Params } from './inbound.ts'
import { rpc } from './refusal.ts'

interface Received {
  readonly method: string
  readonly params: Params
}

/**
 * The params of a client's message with the members that its revision defines, and no others (V1). Throws for a member
 * that a server might take for one of them. Params of unknown methods are returned as they are: nobody reads them.
 */
export function definedParams({ method, params }: Received, scope: Scope, log: Log): Params {
  const level = Object.hasOwn(fromClients, method) ? fromClients[method] : undefined
  if (level === undefined) return params
  const leftOut: string[] = []
  try {
    const defined = definedMembers(params, level, scope, leftOut)
    if (leftOut.length > 0) {
      log.debug(
        { method, revision: scope.revision, members: leftOut.slice(0, 10) },
        'left out unknown members of params',
      )
    }
    return defined
  } catch (thrown) {
    if (thrown instanceof AmbiguousMember) throw new ProtocolError(rpc.params, thrown.message)
    throw thrown
  }
}

/**
 * The same for a notification, to which there is no answer: `undefined` where it must be ignored, after `malformed` was
 * called with the reason.
 */
export function definedNotice(
  received: Received,
  scope: Scope,
  log: Log,
  malformed: (fault: string) => void,
): Params | undefined {
  try {
    return definedParams(received, scope, log)
  } catch (thrown) {
    if (!(thrown instanceof ProtocolError)) throw thrown
    log.debug({ method: received.method, reason: thrown.message }, 'ignored a notification of a client')
    malformed(thrown.message)
    return undefined
  }
}
