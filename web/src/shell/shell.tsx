import { useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { useLayoutEffect, useRef } from 'preact/hooks'
import { gatewayGone, heardAt, liveOverview, streamState } from '../api/live.ts'
import { noAgent, session, signOut } from '../api/session.ts'
import { Button } from '../components/button.tsx'
import { Icon, Logo } from '../components/icon.tsx'
import { loadedPages } from '../components/lazy.tsx'
import { Notices, withNotice } from '../components/notices.tsx'
import { StatusBadge } from '../components/status-badge.tsx'
import { streamStatuses } from '../components/statuses.ts'
import { formatClockTime } from '../format/time.ts'
import { path } from '../routing/location.ts'
import { pathTo } from '../routing/route.ts'
import { mayDiscard } from '../routing/unsaved.ts'
import { helpShown } from './keyboard.ts'
import { Menu } from './menu.tsx'
import { now } from './now.ts'
import { SearchButton, SearchDialog } from './search.tsx'
import { ShortcutHelp } from './shortcut-help.tsx'
import { ThemeSwitch } from './theme-switch.tsx'

/** The navigation and everything else around a page. */
export function Shell({ children }: { readonly children: ComponentChildren }) {
  const open = useSignal(false)
  const main = useRef<HTMLElement>(null)
  const previousPath = useRef(path.value)
  // Runs before the page is painted: if the user presses a key at once, the focus has already moved.
  useLayoutEffect(() => {
    if (previousPath.current === path.value) return
    open.value = false
    // A page that is still being loaded has no title yet.
    if (!main.current?.querySelector('h1')) return
    moveFocus(main.current, previousPath.current, path.value)
    previousPath.current = path.value
  }, [path.value, loadedPages.value, open])
  return (
    <div class="shell" data-stale={gatewayGone.value || undefined}>
      <GatewayGone />
      <a class="skip" href="#main">
        Skip to content
      </a>
      <header class="topbar">
        <Button
          kind="plain icon"
          icon="menu"
          aria-label="Menu"
          aria-expanded={open.value}
          onClick={() => (open.value = !open.value)}
        />
        <a class="brand" href="/">
          <Logo /> Toolway
        </a>
        <LiveState />
        <SearchButton />
      </header>
      {/* biome-ignore lint/a11y/noStaticElementInteractions: the menu button does the same by keyboard */}
      {/* biome-ignore lint/a11y/useKeyWithClickEvents: the menu button does the same by keyboard */}
      {open.value && <div class="backdrop" onClick={() => (open.value = false)} />}
      <aside class="side" aria-label="Toolway" data-open={open.value || undefined}>
        <a class="brand" href="/">
          <Logo /> Toolway
        </a>
        <SearchButton />
        <Menu />
        <div class="side-foot">
          <div class="row spread">
            <LiveState />
            <span class="row">
              <ThemeSwitch />
              <Button
                kind="icon tiny"
                icon="help"
                title="Keyboard shortcuts (?)"
                aria-label="Keyboard shortcuts"
                onClick={() => (helpShown.value = true)}
              />
            </span>
          </div>
          <Account />
          {liveOverview.value && <span class="quiet">Version {liveOverview.value.version}</span>}
        </div>
      </aside>
      <main class="main" id="main" ref={main} tabIndex={-1}>
        {children}
      </main>
      <Notices />
      <ShortcutHelp />
      <SearchDialog />
    </div>
  )
}

/** Says across the top of every page that its figures are old. */
function GatewayGone() {
  if (!gatewayGone.value) return null
  const since = heardAt.value
  return (
    <p class="gone" role="alert">
      <Icon name="warning" /> <strong>Toolway does not answer.</strong>
      {since !== undefined && ` Everything below is as of ${formatClockTime(since, now.value)}.`} The dashboard
      reconnects automatically.
    </p>
  )
}

function Account() {
  const user = session.value
  if (typeof user !== 'object') return null
  return (
    <div class="account">
      <span>
        <strong>{user.principal}</strong>, {user.admin ? 'admin' : 'not an admin'}
      </span>
      <span class="quiet">acting as {user.agent === noAgent ? 'no agent' : user.agent}</span>
      {user.authenticated ? (
        <Button kind="tiny" icon="leave" onClick={() => mayDiscard() && void withNotice(signOut, () => 'Signed out.')}>
          Sign out
        </Button>
      ) : (
        <a class="button tiny" href={pathTo('sign-in')}>
          Sign in
        </a>
      )}
    </div>
  )
}

/**
 * Moves the focus after navigation: to the new page's title, which screen readers then announce, or, when returning to
 * a list, to the row of the item that was open.
 */
function moveFocus(main: HTMLElement, from: string, to: string): void {
  const row = from.startsWith(`${to}/`) && rowOf(main, from)
  const panel = main.querySelector<HTMLElement>('[data-focus]')
  // If details open beside a list, keep the list's scroll position.
  if (!row && !panel) window.scrollTo(0, 0)
  const target = row || panel || main.querySelector<HTMLElement>('h1')
  target?.focus({ preventScroll: !row })
}

const rowOf = (main: HTMLElement, path: string): HTMLElement | undefined =>
  [...main.querySelectorAll<HTMLAnchorElement>('a.row-link')].find((link) => link.pathname === path)

const streamHints = {
  live: 'Connected. Updates arrive as they happen.',
  reconnecting: 'Connection lost; reconnecting. Data may be a few seconds old.',
  offline: 'Cannot reach Toolway. Pages show the last known data and retry automatically.',
} as const

function LiveState() {
  const state = streamState.value
  return (
    <span class="live" title={streamHints[state]}>
      <StatusBadge status={streamStatuses[state]} />
    </span>
  )
}
