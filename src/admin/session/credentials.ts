import { hash, randomBytes } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import * as z from 'zod'
import type { Access } from '../../core/access.ts'
import type { Clock } from '../../core/clock.ts'
import { type LoginStore, maxLogins, maxLoginsOfOne } from '../../core/history.ts'
import { jsonValue } from '../../json/parse-json.ts'
import { isRecord } from '../../lib/is-record.ts'
import { createSeal } from '../../lib/seal.ts'
import { type Authenticate, type AuthIdentity, agentFor, hasSameRights, identityAt } from '../../serve/auth/identity.ts'
import type { Admit } from '../../serve/auth/throttle.ts'
import { HttpError } from '../../serve/errors.ts'
import type { SessionView } from '../contract.ts'
import { sessionView } from '../overview/schema.ts'
import { type AdminUser, publicRoute, type Route, userRoute } from '../router.ts'

export type Credentials = ReturnType<typeof createCredentials>

/** Authenticates admin requests. Accepts the same credentials as the MCP endpoint, and a login cookie from browsers. */
export function createCredentials(options: {
  readonly access: Pick<Access, 'agentOf' | 'rejected'>
  readonly authenticate: Authenticate
  readonly admit: Admit
  readonly port: number
  readonly clock: Clock
  /** Where logins outlive the process; undefined if they do not. */
  readonly logins?: LoginStore | undefined
}) {
  const { access, authenticate, admit, port, clock } = options
  const logins = createLogins(clock, options.logins)

  /** Checks a login's credential again: a login is valid only as long as its credential is. */
  const identityOf = async (login: Login): Promise<AuthIdentity> => {
    if (logins.known(login.id) !== login) throw over()
    try {
      const identity = await authenticate(login.authorization)
      if (!hasSameRights(identity, login.identity)) throw over()
      return identity
    } catch (thrown) {
      if (thrown instanceof HttpError && thrown.status === 401) await logins.end(login)
      throw thrown
    }
  }

  const userOf = (
    request: IncomingMessage,
    identity: AuthIdentity,
    reauthenticate: AdminUser['reauthenticate'],
  ): AdminUser => {
    const { remoteAddress: address } = request.socket
    // A key for certain endpoints may not reach other tools here.
    identityAt(identity, undefined)
    const header = request.headers['toolway-agent']
    const asked = typeof header === 'string' ? header : undefined
    const agent = agentFor(access, { ...identity, address }, asked)
    // Use one session per principal for tool calls from the dashboard, because servers keep state per session.
    const session = `admin ${identity.principal}`
    return { caller: { ...identity, agent, asked, address, session, capabilities: {} }, identity, reauthenticate }
  }

  const loginOf = async (request: IncomingMessage): Promise<Login | undefined> => {
    const id = cookieOf(request, port)
    return id === undefined ? undefined : logins.find(id)
  }

  return {
    /** Rejects with a 401 if the credential is missing or invalid. */
    async admit(request: IncomingMessage): Promise<AdminUser> {
      const { authorization } = request.headers
      if (authorization === undefined) checkSite(request)
      const login = authorization === undefined ? await loginOf(request) : undefined
      if (login) {
        checkOurPage(request)
        return userOf(request, await identityOf(login), () => identityOf(login))
      }
      const identity = await admit(authorization, request)
      return userOf(request, identity, async () => authenticate(authorization))
    },
    async logIn(request: IncomingMessage, token: string): Promise<{ user: AdminUser; cookie: string }> {
      const authorization = `Bearer ${token}`
      const identity = await admit(authorization, request)
      const before = await loginOf(request)
      if (before) await logins.end(before)
      const login = await logins.open(authorization, identity)
      const user = userOf(request, identity, () => identityOf(login))
      return { user, cookie: setCookie(request, port, login) }
    },
    /** Ends the login and returns the Set-Cookie header that deletes its cookie. */
    async logOut(request: IncomingMessage): Promise<string> {
      const login = await loginOf(request)
      if (login) {
        checkOurPage(request)
        await logins.end(login)
      }
      return setCookie(request, port)
    },
  }
}

const over = () => HttpError.of('AUTH_REQUIRED', 'Your login has expired: log in again.')

/** The cookie's name. It contains the port, because browsers share cookies between ports. */
const cookieName = (port: number): string => `toolway_admin_${port}`

function cookieOf({ headers }: IncomingMessage, port: number): string | undefined {
  const pairs = (headers.cookie ?? '').split(';').map((pair) => pair.split('=').map((part) => part.trim()))
  return pairs.find(([key, value]) => key === cookieName(port) && value)?.[1]
}

/** The Set-Cookie header for a login. Without a login, returns the header that deletes the cookie. */
function setCookie(request: IncomingMessage, port: number, login?: Login): string {
  const value = login?.id ?? ''
  const seconds = login ? loginMs / 1000 : 0
  // Mark the cookie as secure if the page was loaded over TLS, so that the browser never sends it unencrypted.
  const secure = request.headers.origin?.startsWith('https://') ? '; Secure' : ''
  return `${cookieName(port)}=${value}; Path=/admin/api; Max-Age=${seconds}; HttpOnly; SameSite=Strict${secure}`
}

/**
 * Rejects requests that a browser sends for a page of another origin, even if no credential is required: such a page
 * cannot read the response, but could open streams. SameSite cookies are not sufficient, because they treat all of
 * localhost as one site.
 */
function checkSite({ headers }: IncomingMessage): void {
  const site = headers['sec-fetch-site']
  if (site !== undefined && site !== 'same-origin' && site !== 'none') {
    throw csrfRefusal(
      'The request came from another site: only the dashboard may use the admin API without a credential.',
    )
  }
}

/** CSRF protection for requests with a cookie. Only the dashboard's own page can set a custom header. */
function checkOurPage(request: IncomingMessage): void {
  checkSite(request)
  const { method, headers } = request
  if (method !== 'GET' && method !== 'HEAD' && headers['toolway-admin'] !== '1') {
    throw csrfRefusal('With a cookie, requests other than GET need the header "Toolway-Admin: 1".')
  }
}

const csrfRefusal = (sentence: string) => HttpError.of('DENIED_BY_POLICY', sentence, { rule: 'admin.csrf' })

/** A browser's login. The credential stays in the gateway; the browser gets only the id. */
interface Login {
  readonly id: string
  readonly authorization: string
  readonly identity: AuthIdentity
  readonly until: number
  /** When the store last had this login; undefined if it never did. */
  storedAt: number | undefined
}

/** Lifetime of a login; longer than a working day. */
export const loginMs = 12 * 3_600_000

/** How soon a login that ended in another process ends in this one. */
const loginRecheckMs = 5_000

/**
 * Logins in memory, and in a store if there is one. Stored logins are encrypted with their id, which only the browser
 * has: the store alone reveals no credential.
 */
export function createLogins(clock: Clock, store?: LoginStore) {
  // Logins by the digest of their id, oldest first. Digests ensure that lookup timing reveals nothing about the ids.
  const logins = new Map<string, Login>()

  const forget = ({ id }: Login) => void logins.delete(loginDigest(id))

  const makeRoom = (principal: string) => {
    for (const login of logins.values()) if (login.until <= clock.monotonic()) forget(login)
    const own = [...logins.values()].filter(({ identity }) => identity.principal === principal)
    const [oldest] = own.length >= maxLoginsOfOne ? own : logins.size >= maxLogins ? logins.values() : []
    if (oldest) forget(oldest)
  }

  const remember = (login: Login): Login => {
    makeRoom(login.identity.principal)
    logins.set(loginDigest(login.id), login)
    return login
  }

  /** A login that is in memory. */
  const known = (id: string): Login | undefined => {
    const login = logins.get(loginDigest(id))
    return login && login.until > clock.monotonic() ? login : undefined
  }

  /** Forgets a login that the store no longer has. A login that was never stored lives in this process only. */
  const recheck = async (login: Login, of: LoginStore) => {
    const at = clock.monotonic()
    if (login.storedAt === undefined || at - login.storedAt < loginRecheckMs) return
    login.storedAt = at
    if ((await of.find(loginDigest(login.id))) === null) forget(login)
  }

  return {
    known,
    async open(authorization: string, identity: AuthIdentity): Promise<Login> {
      const id = randomBytes(32).toString('base64url')
      const login = remember({ id, authorization, identity, until: clock.monotonic() + loginMs, storedAt: undefined })
      const owner = loginDigest(identity.principal)
      const until = clock.now() + loginMs
      const stored = await store?.add({ digest: loginDigest(id), owner, sealed: sealLogin(login), until })
      if (stored) login.storedAt = clock.monotonic()
      return login
    },
    /** A login of this process, of an earlier one, or of one that runs beside it. */
    async find(id: string): Promise<Login | undefined> {
      const own = known(id)
      if (own && store) await recheck(own, store)
      if (own || !store || !isId(id)) return known(id)
      const stored = await store.find(loginDigest(id))
      const content = stored && unsealLogin(id, stored.sealed)
      const leftMs = Math.min((stored?.until ?? 0) - clock.now(), loginMs)
      if (!content || leftMs <= 0) return undefined
      // Another request may have restored it in the meantime.
      return known(id) ?? remember({ id, ...content, until: clock.monotonic() + leftMs, storedAt: clock.monotonic() })
    },
    async end(login: Login): Promise<void> {
      forget(login)
      await store?.remove(loginDigest(login.id))
    },
  }
}

const loginDigest = (text: string): string => hash('sha256', text, 'base64url')

const isId = (text: string): boolean => /^[\w-]{43}$/.test(text)

const binding = 'login'

function sealLogin({ id, authorization, identity }: Login): string {
  const { principal, authenticated, admin, agents } = identity
  const content = { authorization, identity: { principal, authenticated, admin, agents } }
  return createSeal(id).close(JSON.stringify(content), binding)
}

function unsealLogin(id: string, text: string): Pick<Login, 'authorization' | 'identity'> | undefined {
  const content: unknown = jsonValue(createSeal(id).open(text, binding) ?? 'null')
  if (!isRecord(content) || typeof content.authorization !== 'string') return undefined
  return { authorization: content.authorization, identity: content.identity as AuthIdentity }
}

/** Maximum size of a login request; large enough for the longest credential, encoded as JSON. */
const maxBody = 64 * 1024

export const sessionRoutes = (credentials: Credentials): readonly Route[] => [
  userRoute('GET', 'session', 'The current user and their rights', {
    answer: sessionView,
    run: ({ user }) => viewSession(user),
  }),
  publicRoute('POST', 'session', 'Logs in with a credential and sets a cookie', {
    body: z.strictObject({ token: z.string().min(1).describe('The token, an API key, or a JSON Web Token.') }),
    maxBody,
    answer: sessionView,
    async run({ request, response, body }) {
      const { user, cookie } = await credentials.logIn(request, body.token)
      response.setHeader('Set-Cookie', cookie)
      return viewSession(user)
    },
  }),
  publicRoute('DELETE', 'session', 'Logs out and deletes the cookie', {
    async run({ request, response }) {
      response.setHeader('Set-Cookie', await credentials.logOut(request))
    },
  }),
]

const viewSession = ({ caller }: AdminUser): SessionView => {
  const { principal, agent, authenticated, admin, agents } = caller
  return { principal, agent, authenticated, admin, agents }
}
