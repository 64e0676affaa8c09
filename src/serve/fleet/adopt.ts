import type { Access } from '../../core/access.ts'
import type { Log } from '../../core/log.ts'
import { agentFor } from '../agent.ts'
import type { Identity } from '../authenticate/index.ts'
import type { Sessions } from '../sessions.ts'
import { readRecord } from './session-record.ts'

/** A session whose holder is gone, and who asks for it now. */
export interface Orphan {
  readonly id: string
  readonly record: string
  readonly identity: Identity
  readonly address: string | undefined
}

export interface Adoption {
  readonly access: Access
  readonly sessions: Sessions
  readonly log: Log
}

/** Goes on with it here, for nobody but whom it belongs to. */
export function adoptSession({ access, sessions, log }: Adoption, { id, record, identity, address }: Orphan): void {
  const kept = readRecord(record)
  if (kept === undefined || kept.principal !== identity.principal) return
  const { asked, client, logLevel, subscriptions } = kept
  const agent = agentFor(access, { ...identity, ...(address !== undefined && { address }) }, asked)
  const session = sessions.open({ ...identity, agent, ...(asked !== undefined && { asked }) }, client, address, id)
  session.logLevel = logLevel
  log.info({ principal: identity.principal }, 'went on with a session whose replica is gone')
  for (const uri of subscriptions) {
    session.subscriptions
      .goOn(uri)
      .catch((cause: unknown) => log.warn({ uri, err: cause }, 'cannot follow it any more'))
  }
}
