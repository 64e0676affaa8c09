import type { ComponentChildren } from 'preact'
import { gatewayGone } from '../api/live.ts'
import type { ApiError } from '../api/request.ts'
import type { Resource } from '../api/resource.ts'
import { showDirections } from '../format/show-directions.ts'
import { Button } from './button.tsx'
import { Icon } from './icon.tsx'

export function Loading({ what }: { readonly what: string }) {
  return (
    <div class="loading" role="status">
      <span class="hidden">Loading {what}…</span>
      <span aria-hidden="true" />
      <span aria-hidden="true" />
      <span aria-hidden="true" />
    </div>
  )
}

interface LoadErrorProps {
  readonly error: ApiError
  readonly what: string
  retry?(): void
}

export function LoadError({ error, what, retry }: LoadErrorProps) {
  return (
    <Note tone="bad">
      <p>
        <strong>Could not load {what}.</strong> <bdi>{showDirections(error.message)}</bdi>
      </p>
      <p class="quiet small">
        {error.code}
        {error.status > 0 && `, HTTP ${error.status}`}
      </p>
      {retry && (
        <p>
          <Button kind="tiny" icon="refresh" onClick={retry}>
            Try again
          </Button>
        </p>
      )}
    </Note>
  )
}

interface NoteProps {
  readonly tone?: 'info' | 'warn' | 'bad'
  readonly children: ComponentChildren
}

export function Note({ tone = 'info', children }: NoteProps) {
  return (
    <div class={`note tone-${tone}`} role={tone === 'bad' ? 'alert' : undefined}>
      <Icon name={tone === 'info' ? 'info' : 'warning'} />
      <div class="stack tight">{children}</div>
    </div>
  )
}

interface EmptyStateProps {
  readonly title: string
  readonly children?: ComponentChildren
}

export function EmptyState({ title, children }: EmptyStateProps) {
  return (
    <div class="empty">
      <h2>{title}</h2>
      {children}
    </div>
  )
}

interface LoadedProps<T> {
  readonly resource: Resource<T>
  readonly what: string
  children(data: T): ComponentChildren
}

/** Renders data once it is loaded. If reloading fails, the error, or that the gateway is gone, is shown above the last data. */
export function Loaded<T>({ resource, what, children }: LoadedProps<T>) {
  const { data, error, reload } = resource
  return (
    <>
      {error && !(gatewayGone.value && data !== undefined) && <LoadError error={error} what={what} retry={reload} />}
      {data !== undefined ? children(data) : !error && <Loading what={what} />}
    </>
  )
}
