import { useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { useEffect, useId, useRef } from 'preact/hooks'
import { type ApiError, asApiError } from '../../api/request.ts'
import { mustSignInAgain, session, sessionError, signIn } from '../../api/session.ts'
import { Button } from '../../components/button.tsx'
import { Dialog } from '../../components/dialog.tsx'
import { Logo } from '../../components/icon.tsx'
import { Note } from '../../components/states.tsx'
import { query, replaceAddress, route } from '../../routing/location.ts'
import { ThemeSwitch } from '../../shell/theme-switch.tsx'
import './sign-in.css'

const invalidToken = 'Invalid or expired token. Check that you copied all of it.'

/** The sign-in page. It keeps the address, so that the requested page opens after signing in. */
export function SignIn() {
  useEffect(() => {
    document.title = 'Sign in · Toolway'
  }, [])
  return (
    <main class="sign-in">
      <div class="card">
        <SignInForm>
          <div class="row spread">
            <span class="brand">
              <Logo /> Toolway
            </span>
            <ThemeSwitch />
          </div>
          <h1>Sign in</h1>
        </SignInForm>
      </div>
    </main>
  )
}

/** Signs in again without leaving the page, so that its unsaved input stays. */
export function SignInAgain() {
  return (
    <Dialog title="Sign in" keepOpen={signInFirst} onClose={() => {}}>
      <SignInForm>
        <p>Sign in again to continue with your unsaved changes.</p>
      </SignInForm>
    </Dialog>
  )
}

const signInFirst = 'Leave without signing in? Your changes are not saved.'

/** The sign-in form, with what is shown above it. */
function SignInForm({ children }: { readonly children: ComponentChildren }) {
  const id = useId()
  const input = useRef<HTMLInputElement>(null)
  const busy = useSignal(false)
  const error = useSignal<ApiError | undefined>(sessionError.peek())
  useEffect(() => input.current?.focus(), [])
  const submit = async (event: Event) => {
    event.preventDefault()
    const token = input.current?.value ?? ''
    if (token.trim() === '' || busy.value) return
    busy.value = true
    try {
      await signIn(token)
      if (route.peek().page === 'sign-in') replaceAddress('/')
    } catch (thrown) {
      error.value = asApiError(thrown)
      input.current?.select()
    }
    busy.value = false
  }
  return (
    <form class="stack sign-in-form" onSubmit={submit}>
      {children}
      {query.value.get('signIn') === 'done' && (
        <Note>
          <p>You are signed in to the server. To see the server, sign in to the dashboard.</p>
        </Note>
      )}
      {error.value && (
        <Note tone="bad">
          <p>{error.value.status === 401 ? invalidToken : error.value.message}</p>
        </Note>
      )}
      <div class="stack tight">
        <label class="label" for={id}>
          Token or API key
        </label>
        <input
          ref={input}
          id={id}
          class="input mono"
          type="password"
          autocomplete="current-password"
          spellcheck={false}
          required
        />
      </div>
      <Button kind="primary" type="submit" aria-disabled={busy.value}>
        {busy.value ? 'Signing in…' : 'Sign in'}
      </Button>
      {typeof session.value === 'object' && !mustSignInAgain.value && <a href="/">Continue without signing in</a>}
      <details>
        <summary>Where do I find it?</summary>
        <div class="stack tight quiet">
          <p>
            <code>toolway serve</code> prints the token when it starts, together with a link that signs you in. The
            token is stored in the file <code>token</code> in the state folder: <code>~/.local/state/toolway</code>, or{' '}
            <code>stores.path</code> if set.
          </p>
          <p>
            You can also use an API key: <code>toolway keys create NAME --admin</code>. Without admin rights, you see
            only what the key's agent may use, and you cannot change anything.
          </p>
        </div>
      </details>
    </form>
  )
}
