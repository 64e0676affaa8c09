import { hash, randomBytes } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import type { Access } from '../../core/access.ts'
import type { Caller } from '../../core/call.ts'
import type { Clock } from '../../core/clock.ts'
import { agentFor } from '../auth/agent.ts'
import { type Authenticate, type AuthIdentity, hasSameRights } from '../auth/identity.ts'
import type { Admit } from '../auth/throttle.ts'
import { HttpError } from '../errors.ts'

/** Somebody who was let in. */
export interface AdminUser {
  readonly caller: Caller
  readonly identity: AuthIdentity
  /** Whom the same credential lets in now; rejects once it lets in nobody. */
  reauthenticate(): Promise<AuthIdentity>
}

/** Who may use the admin API: the credentials of the MCP door, and for browsers a cookie that stands for one. */
export interface Credentials {
  /** Rejects with a 401 where a credential is missing or wrong. */
  admit(request: IncomingMessage): Promise<AdminUser>
  /** Takes a credential and gives a cookie for it. */
  logIn(request: IncomingMessage, token: string): Promise<{ readonly guest: AdminUser; readonly cookie: string }>
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
  const identityOf = async (login: Login): Promise<AuthIdentity> => {
    if (logins.find(login.id) !== login) throw over()
    try {
      const identity = await authenticate(login.authorization)
      if (!hasSameRights(identity, login.identity)) throw over()
      return identity
    } catch (thrown) {
      if (thrown instanceof HttpError && thrown.status === 401) logins.end(login)
      throw thrown
    }
  }

  const guestOf = (request: IncomingMessage, identity: AuthIdentity, again: AdminUser['reauthenticate']): AdminUser => {
    const { remoteAddress } = request.socket
    const address = remoteAddress === undefined ? {} : { address: remoteAddress }
    const header = request.headers['toolway-agent']
    const asked = typeof header === 'string' ? header : undefined
    const agent = agentFor(access, { ...identity, ...address }, asked)
    // What a server keeps for a caller's session, it keeps for whoever tries its tools here.
    const session = `admin ${identity.principal}`
    const chosen = asked === undefined ? { agent } : { agent, asked }
    return {
      caller: { ...identity, ...chosen, ...address, session, capabilities: {} },
      identity,
      reauthenticate: again,
    }
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

const over = () => HttpError.of('AUTH_REQUIRED', 'You are no longer logged in: log in again.')

/** Cookies know no ports: two gateways on one machine must not take each other's. */
const nameOn = (port: number): string => `toolway_admin_${port}`

/** The id that a browser shows, if any. */
function cookieOf({ headers }: IncomingMessage, port: number): string | undefined {
  const name = nameOn(port)
  for (const pair of (headers.cookie ?? '').split(';')) {
    const [key = '', value = ''] = pair.split('=').map((part) => part.trim())
    if (key === name && value !== '') return value
  }
  return undefined
}

/** The cookie for a login, or, without one, the one that ends it. */
function setCookie(request: IncomingMessage, port: number, login?: Login): string {
  const value = login?.id ?? ''
  const seconds = login ? loginMs / 1000 : 0
  // Behind a proxy that speaks TLS the browser must never send it in the clear.
  const secure = request.headers.origin?.startsWith('https://') ? '; Secure' : ''
  return `${nameOn(port)}=${value}; Path=/admin/api; Max-Age=${seconds}; HttpOnly; SameSite=Strict${secure}`
}

/**
 * A browser sends a cookie along whoever asks it to. Only a page of ours can set a header of its own, and where the
 * browser says which page asked, it must be ours: to SameSite, all of localhost is one site.
 */
function checkOurPage({ method, headers }: IncomingMessage): void {
  const site = headers['sec-fetch-site']
  if (site !== undefined && site !== 'same-origin' && site !== 'none') {
    throw refused('Only the dashboard itself may use its cookie: another page asked for this.')
  }
  if (method !== 'GET' && method !== 'HEAD' && headers['toolway-admin'] !== '1') {
    throw refused('With a cookie, whatever changes something needs the header "Toolway-Admin: 1".')
  }
}

const refused = (sentence: string) => HttpError.of('DENIED_BY_POLICY', sentence, { rule: 'admin.csrf' })

/** Somebody who has logged in with a browser. The credential stays here: the browser only has the id. */
interface Login {
  readonly id: string
  readonly authorization: string
  /** What the credential was good for then. */
  readonly identity: AuthIdentity
  readonly until: number
}

interface Logins {
  open(authorization: string, identity: AuthIdentity): Login
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
