import { useEffect } from 'preact/hooks'
import { startLive } from './api/live.ts'
import { refreshSession, session, sessionError } from './api/session.ts'
import { lazy } from './components/lazy.tsx'
import { lazyPage } from './components/lazy-page.tsx'
import { LoadError, Loading } from './components/states.tsx'
import { Approvals } from './pages/approvals/approvals.tsx'
import { Audit } from './pages/audit/audit.tsx'
import { ChatPage } from './pages/chat/chat-page.tsx'
import { Configuration } from './pages/config/configuration.tsx'
import { ErrorPage } from './pages/errors/error-page.tsx'
import { NotFound } from './pages/not-found.tsx'
import { Overview } from './pages/overview/overview.tsx'
import { PinPage } from './pages/pins/pin-page.tsx'
import { Pins } from './pages/pins/pins.tsx'
import { Policy } from './pages/policy/policy.tsx'
import { ServerPage } from './pages/servers/server-page.tsx'
import { Servers } from './pages/servers/servers.tsx'
import { SignIn } from './pages/sign-in.tsx'
import { route } from './routing/location.ts'
import { Shell } from './shell/shell.tsx'

const Calls = lazyPage(async () => (await import('./pages/calls/calls.tsx')).Calls)
const Tools = lazyPage(async () => (await import('./pages/tools/tools.tsx')).Tools)
const ToolPage = lazyPage(async () => (await import('./pages/tools/tool-page.tsx')).ToolPage)
const Keys = lazy('the keys', async () => (await import('./pages/keys/keys.tsx')).Keys)

export function App() {
  const known = typeof session.value === 'object'
  useEffect(() => (known ? startLive() : undefined), [known])
  if (session.value === 'none') return <SignIn />
  if (session.value === 'unknown') {
    const error = sessionError.value
    return error ? (
      <main class="main">
        <h1 class="hidden">Toolway</h1>
        <LoadError error={error} what="the dashboard" retry={() => void refreshSession()} />
      </main>
    ) : (
      <Loading what="the dashboard" />
    )
  }
  if (route.value.page === 'sign-in') return <SignIn />
  return (
    <Shell>
      <CurrentPage />
    </Shell>
  )
}

function CurrentPage() {
  const here = route.value
  if ('name' in here) {
    if (here.page === 'pins') return <PinPage key={here.name} label={here.name} />
    return here.page === 'servers' ? (
      <ServerPage key={here.name} name={here.name} />
    ) : (
      <ToolPage key={here.name} name={here.name} />
    )
  }
  if ('code' in here) return <ErrorPage key={here.code} code={here.code} />
  switch (here.page) {
    case 'overview':
      return <Overview />
    case 'servers':
      return <Servers />
    case 'tools':
      return <Tools />
    case 'pins':
      return <Pins />
    case 'chat':
      return <ChatPage />
    case 'calls':
      return <Calls id={'id' in here ? here.id : undefined} />
    case 'approvals':
      return <Approvals />
    case 'policy':
      return <Policy />
    case 'keys':
      return <Keys />
    case 'audit':
      return <Audit />
    case 'config':
      return <Configuration />
    default:
      return <NotFound />
  }
}
