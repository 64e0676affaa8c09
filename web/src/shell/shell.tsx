import { useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import { liveOverview } from '../api/live.ts'
import { Brand, Icon } from '../parts/icon.tsx'
import { Notices } from '../parts/notices.tsx'
import { path } from '../routing/location.ts'
import { Account } from './account.tsx'
import { arrive } from './arrive.ts'
import { Help } from './help.tsx'
import { helpShown } from './keyboard.ts'
import { LiveState } from './live-state.tsx'
import { Menu } from './menu.tsx'
import { ThemeSwitch } from './theme-switch.tsx'

/** Navigation and everything else around a page. */
export function Shell({ children }: { readonly children: ComponentChildren }) {
  const open = useSignal(false)
  const main = useRef<HTMLElement>(null)
  const before = useRef(path.value)
  useEffect(() => {
    if (before.current === path.value) return
    open.value = false
    if (main.current) arrive(main.current, before.current, path.value)
    before.current = path.value
  }, [path.value, open])
  return (
    <div class="shell">
      <a class="skip" href="#main">
        Skip to content
      </a>
      <header class="topbar">
        <button
          type="button"
          class="button plain icon"
          aria-label="Menu"
          aria-expanded={open.value}
          onClick={() => (open.value = !open.value)}
        >
          <Icon name="menu" />
        </button>
        <a class="brand" href="/">
          <Brand /> Toolway
        </a>
        <LiveState />
      </header>
      {/* biome-ignore lint/a11y/noStaticElementInteractions: the menu button does the same by keyboard */}
      {/* biome-ignore lint/a11y/useKeyWithClickEvents: the menu button does the same by keyboard */}
      {open.value && <div class="curtain" onClick={() => (open.value = false)} />}
      <aside class="side" aria-label="Toolway" data-open={open.value || undefined}>
        <a class="brand" href="/">
          <Brand /> Toolway
        </a>
        <Menu />
        <div class="side-foot">
          <div class="row spread">
            <LiveState />
            <span class="row">
              <ThemeSwitch />
              <button
                type="button"
                class="button icon tiny"
                title="Keyboard shortcuts (?)"
                aria-label="Keyboard shortcuts"
                onClick={() => (helpShown.value = true)}
              >
                <Icon name="help" size={14} />
              </button>
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
      <Help />
    </div>
  )
}
