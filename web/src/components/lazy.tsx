import { signal, useSignal } from '@preact/signals'
import type { ComponentType } from 'preact'
import { useEffect, useLayoutEffect } from 'preact/hooks'
import { Button } from './button.tsx'
import { Loading, Note } from './states.tsx'

type Load<Props> = () => Promise<ComponentType<Props>>

interface FailureProps {
  readonly what: string
  retry(): void
}

/**
 * A part of a page whose code is loaded when it is first shown, which keeps the overview small. The gateway serves only
 * the files of its own version, so loading fails after an update until the dashboard is reloaded.
 */
export const lazy = <Props extends object>(what: string, load: Load<Props>): ComponentType<Props> =>
  createLazy(what, load, PartNotLoaded)

/** How many pages have been loaded. The shell then moves the focus to the title of the new one. */
export const loadedPages = signal(0)

/** The same for a whole page. */
export const lazyPage = <Props extends object>(load: Load<Props>): ComponentType<Props> =>
  createLazy('the page', load, PageNotLoaded, () => loadedPages.value++)

function createLazy<Props extends object>(
  what: string,
  load: Load<Props>,
  Failure: ComponentType<FailureProps>,
  onSettled?: () => void,
): ComponentType<Props> {
  /** Shared by all places that show the part, so that a retry in one of them is enough. */
  const loaded = signal<ComponentType<Props> | undefined>(undefined)
  return function Lazy(props: Props) {
    const failed = useSignal(false)
    const attempts = useSignal(0)
    useEffect(() => {
      if (loaded.peek()) return
      let shown = true
      failed.value = false
      load().then(
        (component) => {
          loaded.value = component
        },
        async () => {
          const isRetry = attempts.peek() > 0
          if (isRetry && (await isReachable()) && shown) location.reload()
          else if (shown) failed.value = true
        },
      )
      return () => {
        shown = false
      }
    }, [attempts.value])
    const Loaded = loaded.value
    const isSettled = Loaded !== undefined || failed.value
    // Runs before the page is painted, so that the shell can move the focus before.
    useLayoutEffect(() => {
      if (isSettled) onSettled?.()
    }, [isSettled])
    if (Loaded) return <Loaded {...props} />
    return failed.value ? <Failure what={what} retry={() => attempts.value++} /> : <Loading what={what} />
  }
}

/**
 * Whether the gateway answers. If it does and a retry has failed, only a reload helps: the gateway has another version
 * now, or the browser remembers that the module could not be loaded, as many do.
 */
const isReachable = (): Promise<boolean> =>
  fetch('/', { cache: 'no-store' }).then(
    ({ ok }) => ok,
    () => false,
  )

function PageNotLoaded({ retry }: FailureProps) {
  return (
    <div class="page">
      <h1 tabIndex={-1}>This page could not be loaded</h1>
      <NotLoaded retry={retry} />
    </div>
  )
}

const PartNotLoaded = ({ what, retry }: FailureProps) => <NotLoaded what={what} retry={retry} />

function NotLoaded({ what, retry }: Partial<FailureProps> & Pick<FailureProps, 'retry'>) {
  return (
    <Note tone="bad">
      <p>
        {what !== undefined && <strong>Could not load {what}. </strong>}
        Toolway was updated since you opened the dashboard, or it cannot be reached.
      </p>
      <p class="row">
        <Button icon="refresh" onClick={retry}>
          Try again
        </Button>
        <Button onClick={() => location.reload()}>Reload the dashboard</Button>
      </p>
    </Note>
  )
}
