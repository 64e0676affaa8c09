import { computed, signal } from '@preact/signals'
import type { SessionView } from '../../../src/admin/contract.ts'
import { hasUnsaved } from '../routing/unsaved.ts'
import { ApiError, onUnauthorized, request } from './request.ts'

/** The current user, `unknown` before the first response, or `none` if signed out. */
export const session = signal<SessionView | 'unknown' | 'none'>('unknown')

/** Whether the session has ended while the page has unsaved input. Signing in again returns to it. */
export const mustSignInAgain = signal(false)

export const sessionError = signal<ApiError | undefined>(undefined)

export const isAdmin = computed(() => typeof session.value === 'object' && session.value.admin)

/** Identifies the current user and their rights. Undefined while nobody is signed in. */
export const userKey = computed(() => {
  if (typeof session.value !== 'object') return undefined
  const { principal, authenticated, agent, admin } = session.value
  return JSON.stringify([principal, authenticated, agent, admin])
})

/** The agent name that the gateway reports for a caller without an agent. */
export const noAgent = '(none)'

/**
 * The agents that the user may act as. Without an agent every call is denied, so "none" is offered only if there are no
 * other agents.
 */
export function selectableAgents(all: readonly string[]): readonly string[] {
  const user = session.value
  if (typeof user !== 'object') return []
  const others = user.agents === '*' ? all : user.agents
  const own = user.agent === noAgent && others.length > 0 ? [] : [user.agent]
  return [...new Set([...own, ...others])]
}

/** The tooltip on buttons that require admin rights. */
export const adminRequired =
  'Requires admin rights. Sign in with an admin key, or with the token that “toolway serve” prints.'

const sessionEnded = new ApiError(
  0,
  'SESSION_ENDED',
  'Your session has ended: your credential was revoked or changed, or 12 hours have passed.',
)

function sessionLost(): void {
  if (session.peek() === 'none') return
  // The gateway responded, so an earlier error no longer applies.
  sessionError.value = typeof session.peek() === 'object' ? sessionEnded : undefined
  if (typeof session.peek() === 'object' && hasUnsaved()) mustSignInAgain.value = true
  else session.value = 'none'
}

/** Exchanges a token for an HttpOnly cookie. */
export async function signIn(token: string): Promise<void> {
  await request('session', { method: 'POST', body: { token: token.trim() } })
  await refreshSession()
}

export async function signOut(): Promise<void> {
  await request('session', { method: 'DELETE' })
  sessionError.value = undefined
  session.value = 'none'
}

export async function refreshSession(): Promise<void> {
  try {
    session.value = await request<SessionView>('session')
    mustSignInAgain.value = false
    sessionError.value = undefined
  } catch (thrown) {
    if (!(thrown instanceof ApiError)) throw thrown
    if (thrown.status === 401) sessionLost()
    else sessionError.value = thrown
  }
}

/** Signs in with the token in the address, if there is one, or else with the cookie. */
export async function startSession(): Promise<void> {
  onUnauthorized(sessionLost)
  // A link with a token that is opened in a tab with the same page does not load it again.
  window.addEventListener('hashchange', () => {
    const token = takeToken()
    if (token !== undefined) void signInWithLink(token)
  })
  const token = takeToken()
  await (token === undefined ? refreshSession() : signInWithLink(token))
}

async function signInWithLink(token: string): Promise<void> {
  try {
    await signIn(token)
  } catch (thrown) {
    if (!(thrown instanceof ApiError)) throw thrown
    session.value = 'none'
    sessionError.value = thrown
  }
}

/** Reads the token from the address and then removes it, so that it does not stay in the history or on the screen. */
function takeToken(): string | undefined {
  const token = tokenFromHash(window.location.hash)
  if (token !== undefined) history.replaceState(null, '', window.location.pathname + window.location.search)
  return token
}

/** The token in a URL's fragment. Browsers do not send the fragment to servers. */
export function tokenFromHash(hash: string): string | undefined {
  const token = new URLSearchParams(hash.replace(/^#/, '')).get('token')
  return token === null || token === '' ? undefined : token
}
