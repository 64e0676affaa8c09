import type { Membership } from '../core/membership.ts'
import { createSeal } from '../lib/seal.ts'
import type { DeskAnswers } from './desk.ts'
import type { Line } from './line.ts'
import type { Member } from './registry.ts'

/** The workers of one machine, as one of them sees it. */
export interface IpcMembership extends Membership, AsyncDisposable {
  /** Tells the others where this one takes requests. */
  join(address: string): Promise<void>
  /** Those that take requests have changed. */
  heard(members: readonly Member[]): void
  /** Where the oldest other one takes requests, which answers what only one can; undefined where that is this one. */
  lead(): string | undefined
}

/** `secret` is what all workers share, and nobody else knows; `self` is a name that no worker had before. */
export function ipcMembership(line: Line<DeskAnswers>, secret: string, self: string): IpcMembership {
  const seal = createSeal(secret)
  let members: readonly Member[] = []

  return {
    self,
    join: async (address) => void (await line.ask('join', { name: self, address })),
    heard(now) {
      members = now
    },
    lead: () => (members[0]?.name === self ? undefined : members[0]?.address),
    addressOf: (replica) => (replica === self ? undefined : members.find(({ name }) => name === replica)?.address),
    unreachable(replica) {
      members = members.filter(({ name }) => name !== replica)
    },
    async keep(session, record) {
      line.tell('keep', session, record)
      return true
    },
    takeOver: (session, unreachable = '') => line.ask('takeOver', session, unreachable),
    forget: (session) => line.tell('forget', session),
    sign: (text) => seal.close(text, 'fleet'),
    verify: (signed) => seal.open(signed, 'fleet'),
    // The first process sees that it is gone.
    async [Symbol.asyncDispose]() {},
  }
}
