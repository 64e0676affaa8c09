import { hash, randomBytes } from 'node:crypto'
import type { Clock } from '../../core/clock.ts'
import type { Identity } from '../authenticate/index.ts'

/** Somebody who has logged in with a browser. The credential stays here: the browser only has the id. */
export interface Login {
  readonly id: string
  readonly authorization: string
  /** What the credential was good for then. */
  readonly identity: Identity
  readonly until: number
}

export interface Logins {
  open(authorization: string, identity: Identity): Login
  /** Undefined once it is over. */
  find(id: string): Login | undefined
  end(login: Login): void
}

/** A working day, and some more. */
export const loginMs = 12 * 3_600_000

/** Whoever logs in again and again only ends their own. */
const maxOfOne = 16
const maxOfAll = 1_000

export function createLogins(clock: Clock): Logins {
  // By digest, the oldest first: how long a look-up takes tells nothing about ids that there are.
  const logins = new Map<string, Login>()

  const end = ({ id }: Login) => void logins.delete(digest(id))

  const makeRoom = (principal: string) => {
    for (const login of logins.values()) if (login.until <= clock.monotonic()) end(login)
    const own = [...logins.values()].filter(({ identity }) => identity.principal === principal)
    const [oldest] = own.length >= maxOfOne ? own : logins.size >= maxOfAll ? logins.values() : []
    if (oldest) end(oldest)
  }

  return {
    open(authorization, identity) {
      makeRoom(identity.principal)
      const id = randomBytes(32).toString('base64url')
      const login = { id, authorization, identity, until: clock.monotonic() + loginMs }
      logins.set(digest(id), login)
      return login
    },
    find(id) {
      const login = logins.get(digest(id))
      return login && login.until > clock.monotonic() ? login : undefined
    },
    end,
  }
}

const digest = (id: string): string => hash('sha256', id, 'base64url')
