import { useSignal } from '@preact/signals'
import type { ComponentType } from 'preact'
import { useEffect } from 'preact/hooks'
import { Loading } from './states.tsx'

/** A component whose code is loaded when it is first shown, so that the overview stays small. */
export function lazy<Props extends object>(
  what: string,
  load: () => Promise<ComponentType<Props>>,
): ComponentType<Props> {
  return (props: Props) => {
    const loaded = useSignal<{ readonly Component: ComponentType<Props> } | undefined>(undefined)
    useEffect(() => {
      void load().then((Component) => {
        loaded.value = { Component }
      })
    }, [])
    if (!loaded.value) return <Loading what={what} />
    const { Component } = loaded.value
    return <Component {...props} />
  }
}
