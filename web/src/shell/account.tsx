import { noAgent, session, signOut } from '../api/session.ts'
import { Icon } from '../parts/icon.tsx'
import { attempt } from '../parts/notices.tsx'
import { pathTo } from '../routing/route.ts'

export function Account() {
  const who = session.value
  if (typeof who !== 'object') return null
  return (
    <div class="account">
      <span>
        <strong>{who.principal}</strong>, {who.admin ? 'admin' : 'not an admin'}
      </span>
      <span class="quiet">acting as {who.agent === noAgent ? 'no agent' : who.agent}</span>
      {who.authenticated ? (
        <button type="button" class="button tiny" onClick={() => void attempt(signOut, () => 'Signed out.')}>
          <Icon name="leave" size={13} /> Sign out
        </button>
      ) : (
        <a class="button tiny" href={pathTo('sign-in')}>
          Sign in
        </a>
      )}
    </div>
  )
}
