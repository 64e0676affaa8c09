import { computed, signal } from '@preact/signals'
import type { SessionView } from '../../../src/serve/admin/contract.ts'
import { ApiError, onTurnedAway, request } from './request.ts'
import { tokenIn } from './token.ts'

/** Who looks at the dashboard: not known yet, nobody, or somebody. */
export const session = signal<SessionView | 'unknown' | 'none'>('unknown')

/** Why nobody could be asked who it is. */
export const sessionError = signal<ApiError | undefined>(undefined)

/** Whether buttons that change something work. */
export const isAdmin = computed(() => typeof session.value === 'object' && session.value.admin)

/** What the gateway calls the agent of whoever named none, where there is none to fall back on. */
export const noAgent = '(none)'

/** The agents that one may try tools as, of all that there are: to act as none of them is to be refused. */
export function ownAgents(all: readonly string[]): readonly string[] {
  const who = session.value
  if (typeof who !== 'object') return []
  const others = who.agents === '*' ? all : who.agents
  const own = who.agent === noAgent && others.length > 0 ? [] : [who.agent]
  return [...new Set([...own, ...others])]
}

/** What a button says that does not work. */
export const adminReason = 'Requires admin rights. Sign in with the token that `toolway serve` prints.'

/** What somebody is told who was signed in until now. */
const ended = new ApiError(
  0,
  'SESSION_ENDED',
  'Your session has ended: Toolway restarted, your credential was revoked, or 12 hours have passed.',
)

function notAnyMore(): void {
  if (session.peek() === 'none') return
  // Whatever was wrong before: it answers now.
  sessionError.value = typeof session.peek() === 'object' ? ended : undefined
  session.value = 'none'
}

/** Exchanges a token for a cookie that scripts cannot read. */
export async function signIn(token: string): Promise<void> {
  await request('session', { method: 'POST', body: { token: token.trim() } })
  await findSession()
}

export async function signOut(): Promise<void> {
  await request('session', { method: 'DELETE' })
  sessionError.value = undefined
  session.value = 'none'
}

/** Asks who is looking. */
export async function findSession(): Promise<void> {
  try {
    session.value = await request<SessionView>('session')
    sessionError.value = undefined
  } catch (thrown) {
    if (!(thrown instanceof ApiError)) throw thrown
    if (thrown.status === 401) notAnyMore()
    else sessionError.value = thrown
  }
}

/** Begins: with the token in the address, where there is one, and with the cookie otherwise. */
export async function startSession(): Promise<void> {
  onTurnedAway(notAnyMore)
  const token = takeToken()
  if (token === undefined) return findSession()
  try {
    await signIn(token)
  } catch (thrown) {
    if (!(thrown instanceof ApiError)) throw thrown
    session.value = 'none'
    sessionError.value = thrown
  }
}

/** The token leaves the address before anything else happens: it must stay neither in the history nor on the screen. */
function takeToken(): string | undefined {
  const token = tokenIn(window.location.hash)
  if (token !== undefined) history.replaceState(null, '', window.location.pathname + window.location.search)
  return token
}
