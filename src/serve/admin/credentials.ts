import type { IncomingMessage } from 'node:http'
import type { Access } from '../../core/access.ts'
import type { Caller } from '../../core/call.ts'
import type { Clock } from '../../core/clock.ts'
import { agentFor } from '../agent.ts'
import { type Admit, type Authenticate, hasSameRights, type Identity } from '../authenticate/index.ts'
import { Refusal } from '../refusal.ts'
import { checkOurPage, cookieOf, setCookie } from './cookie.ts'
import { createLogins, type Login } from './logins.ts'

/** Somebody who was let in. */
export interface Guest {
  readonly caller: Caller
  readonly identity: Identity
  /** Whom the same credential lets in now; rejects once it lets in nobody. */
  again(): Promise<Identity>
}

/** Who may use the admin API: the credentials of the MCP door, and for browsers a cookie that stands for one. */
export interface Credentials {
  /** Rejects with a 401 where a credential is missing or wrong. */
  admit(request: IncomingMessage): Promise<Guest>
  /** Takes a credential and gives a cookie for it. */
  logIn(request: IncomingMessage, token: string): Promise<{ readonly guest: Guest; readonly cookie: string }>
  /** Ends what the cookie stands for, and gives the one that makes the browser forget it. */
  logOut(request: IncomingMessage): string
}

export interface CredentialsOptions {
  readonly access: Pick<Access, 'agentOf' | 'rejected'>
  readonly authenticate: Authenticate
  readonly admit: Admit
  /** Of the door: cookies of several gateways on one machine are told apart by it. */
  readonly port: number
  readonly clock: Clock
}

export function createCredentials({ access, authenticate, admit, port, clock }: CredentialsOptions): Credentials {
  const logins = createLogins(clock)

  /** A login is only worth what its credential is worth now. */
  const identityOf = async (login: Login): Promise<Identity> => {
    if (logins.find(login.id) !== login) throw over()
    try {
      const identity = await authenticate(login.authorization)
      if (!hasSameRights(identity, login.identity)) throw over()
      return identity
    } catch (thrown) {
      if (thrown instanceof Refusal && thrown.status === 401) logins.end(login)
      throw thrown
    }
  }

  const guestOf = (request: IncomingMessage, identity: Identity, again: Guest['again']): Guest => {
    const { remoteAddress } = request.socket
    const address = remoteAddress === undefined ? {} : { address: remoteAddress }
    const header = request.headers['toolway-agent']
    const asked = typeof header === 'string' ? header : undefined
    const agent = agentFor(access, { ...identity, ...address }, asked)
    // What a server keeps for a caller's session, it keeps for whoever tries its tools here.
    const session = `admin ${identity.principal}`
    const chosen = asked === undefined ? { agent } : { agent, asked }
    return { caller: { ...identity, ...chosen, ...address, session, capabilities: {} }, identity, again }
  }

  const loginOf = (request: IncomingMessage): Login | undefined => {
    const id = cookieOf(request, port)
    return id === undefined ? undefined : logins.find(id)
  }

  return {
    async admit(request) {
      const { authorization } = request.headers
      const login = authorization === undefined ? loginOf(request) : undefined
      if (login) {
        checkOurPage(request)
        return guestOf(request, await identityOf(login), () => identityOf(login))
      }
      const identity = await admit(authorization, request)
      return guestOf(request, identity, async () => authenticate(authorization))
    },
    async logIn(request, token) {
      const authorization = `Bearer ${token}`
      const identity = await admit(authorization, request)
      const before = loginOf(request)
      if (before) logins.end(before)
      const login = logins.open(authorization, identity)
      const guest = guestOf(request, identity, () => identityOf(login))
      return { guest, cookie: setCookie(request, port, login) }
    },
    logOut(request) {
      const login = loginOf(request)
      if (login) {
        checkOurPage(request)
        logins.end(login)
      }
      return setCookie(request, port)
    },
  }
}

const over = () => Refusal.of('AUTH_REQUIRED', 'You are no longer logged in: log in again.')
