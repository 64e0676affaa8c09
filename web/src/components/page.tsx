import type { ComponentChildren } from 'preact'
import { useLayoutEffect } from 'preact/hooks'
import { inboxCount } from '../api/live.ts'
import { Button } from './button.tsx'

interface PageProps {
  readonly title: string
  /** Shown in place of the title, if the heading should be more than text. */
  readonly heading?: ComponentChildren
  readonly note?: ComponentChildren
  readonly back?: { readonly href: string; readonly name: string }
  readonly actions?: ComponentChildren
  readonly children: ComponentChildren
}

export function Page({ title, heading, note, back, actions, children }: PageProps) {
  const waiting = inboxCount.value
  useLayoutEffect(() => {
    document.title = `${waiting ? `(${waiting}) ` : ''}${title} · Toolway`
  }, [title, waiting])
  return (
    <div class="page">
      <header class="page-head">
        <div>
          {back && (
            <a class="crumbs" href={back.href} data-back>
              ← {back.name}
            </a>
          )}
          <h1 tabIndex={-1}>{heading ?? title}</h1>
          {note && <p class="quiet">{note}</p>}
        </div>
        {actions && <div class="row">{actions}</div>}
      </header>
      {children}
    </div>
  )
}

interface CardProps {
  readonly title: ComponentChildren
  readonly side?: ComponentChildren
  readonly flush?: boolean
  readonly children: ComponentChildren
}

export function Card({ title, side, flush = false, children }: CardProps) {
  return (
    <section class="card">
      <div class="card-head">
        <h2>{title}</h2>
        {side}
      </div>
      <div class={`card-body ${flush ? 'flush' : ''}`}>{children}</div>
    </section>
  )
}

export function RefreshButton({ onClick, busy }: { onClick(): void; readonly busy: boolean }) {
  return (
    <Button icon="refresh" onClick={onClick} aria-busy={busy}>
      Refresh
    </Button>
  )
}
