import { useSignal } from '@preact/signals'
import type { FunctionComponent } from 'preact'
import { useEffect } from 'preact/hooks'
import { ApiError } from '../api/request.ts'
import { path } from '../routing/location.ts'
import { LoadError, Loading } from './states.tsx'

const firstPath = path.peek()

/** A page whose code is loaded when it is first opened, so that the overview has less to load. */
export function lazyPage<Props extends object>(
  load: () => Promise<FunctionComponent<Props>>,
): FunctionComponent<Props> {
  let loaded: FunctionComponent<Props> | undefined
  return (props: Props) => {
    const arrived = useSignal(loaded !== undefined)
    const failed = useSignal(false)
    const late = useSignal(false)
    const begin = () => {
      if (loaded) return
      failed.value = false
      load().then(
        (page) => {
          loaded = page
          late.value = true
          arrived.value = true
        },
        () => (failed.value = true),
      )
    }
    useEffect(begin, [])
    useEffect(() => {
      // After a navigation the focus goes to the page's title, which was not there yet.
      if (late.value && path.peek() !== firstPath && document.activeElement === document.body) {
        document.querySelector<HTMLElement>('main [data-focus], main h1')?.focus({ preventScroll: true })
      }
    }, [late.value])
    if (failed.value) return <LoadError error={unreachable} what="the page" retry={begin} />
    const Loaded = loaded
    return arrived.value && Loaded ? <Loaded {...props} /> : <Loading what="the page" />
  }
}

const unreachable = new ApiError(0, 'NO_ANSWER', 'Cannot reach Toolway. It may have stopped, or the network is down.')
