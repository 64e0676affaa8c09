import { signal } from '@preact/signals'
import type { ComponentType } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { Loading, Note } from './components/states.tsx'

/** How many pages have been loaded. The shell then moves the focus to the title of the new one. */
export const loadedPages = signal(0)

/**
 * A page whose code is loaded when it is first opened, which keeps the overview small. The gateway serves only the
 * files of its own version, so loading fails after an update until the dashboard is reloaded.
 */
export function lazyPage<Props extends object>(load: () => Promise<ComponentType<Props>>): ComponentType<Props> {
  let Loaded: ComponentType<Props> | undefined
  return function LazyPage(props: Props) {
    const [state, setState] = useState<'loading' | 'loaded' | 'failed'>(Loaded ? 'loaded' : 'loading')
    useEffect(() => {
      if (Loaded) return
      let shown = true
      load().then(
        (component) => {
          Loaded = component
          if (shown) setState('loaded')
        },
        () => shown && setState('failed'),
      )
      return () => {
        shown = false
      }
    }, [])
    useEffect(() => {
      if (state !== 'loading') loadedPages.value++
    }, [state])
    if (Loaded) return <Loaded {...props} />
    return state === 'failed' ? <PageNotLoaded /> : <Loading what="the page" />
  }
}

function PageNotLoaded() {
  return (
    <div class="page">
      <h1 tabIndex={-1}>This page could not be loaded</h1>
      <Note tone="bad">
        <p>Toolway was updated since you opened the dashboard, or it cannot be reached.</p>
        <p>
          <button type="button" class="button" onClick={() => location.reload()}>
            Reload the dashboard
          </button>
        </p>
      </Note>
    </div>
  )
}
