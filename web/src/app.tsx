import { isAdmin, mustSignInAgain, refreshSession, session, sessionError, userKey } from './api/session.ts'
import { lazyPage } from './components/lazy.tsx'
import { LoadError, Loading } from './components/states.tsx'
import { NotFound } from './pages/not-found/not-found.tsx'
import { Overview } from './pages/overview/overview.tsx'
import { SignIn, SignInAgain } from './pages/sign-in/sign-in.tsx'
import { route } from './routing/location.ts'
import { adminPages, type PageName } from './routing/route.ts'
import { AdminsOnly } from './shell/admins-only.tsx'
import { Shell } from './shell/shell.tsx'

// Only the first page is part of the main script.
const Approvals = lazyPage(async () => (await import('./pages/approvals/approvals.tsx')).Approvals)
const Audit = lazyPage(async () => (await import('./pages/audit/audit.tsx')).Audit)
const Calls = lazyPage(async () => (await import('./pages/calls/calls.tsx')).Calls)
const ChatPage = lazyPage(async () => (await import('./pages/chat/chat-page.tsx')).ChatPage)
const Configuration = lazyPage(async () => (await import('./pages/config/configuration.tsx')).Configuration)
const ErrorPage = lazyPage(async () => (await import('./pages/errors/error-page.tsx')).ErrorPage)
const Keys = lazyPage(async () => (await import('./pages/keys/keys.tsx')).Keys)
const PinPage = lazyPage(async () => (await import('./pages/pins/pin-page.tsx')).PinPage)
const Pins = lazyPage(async () => (await import('./pages/pins/pins.tsx')).Pins)
const Policy = lazyPage(async () => (await import('./pages/policy/policy.tsx')).Policy)
const ServerPage = lazyPage(async () => (await import('./pages/servers/server-page.tsx')).ServerPage)
const Servers = lazyPage(async () => (await import('./pages/servers/servers.tsx')).Servers)
const SkillPage = lazyPage(async () => (await import('./pages/skills/skills.tsx')).SkillPage)
const Skills = lazyPage(async () => (await import('./pages/skills/skills.tsx')).Skills)
const ToolPage = lazyPage(async () => (await import('./pages/tools/tool-page.tsx')).ToolPage)
const Tools = lazyPage(async () => (await import('./pages/tools/tools.tsx')).Tools)

export function App() {
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
    <>
      <div hidden={mustSignInAgain.value}>
        {/* With another user, pages start over: their state may be what only the previous user may see. */}
        <Shell key={userKey.value}>
          <CurrentPage />
        </Shell>
      </div>
      {mustSignInAgain.value && <SignInAgain />}
    </>
  )
}

function CurrentPage() {
  const here = route.value
  if (here.page in adminPages && !isAdmin.value) return <AdminsOnly page={here.page as PageName} />
  if ('name' in here) {
    if (here.page === 'pins') return <PinPage key={here.name} label={here.name} />
    if (here.page === 'skills') return <SkillPage key={here.name} name={here.name} />
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
    case 'skills':
      return <Skills />
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
