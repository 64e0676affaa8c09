import type { ComponentChildren } from 'preact'

export type Tone = 'ok' | 'warn' | 'bad' | 'info' | 'quiet'

/** The symbols for states. They differ in shape as well as in colour, for people who cannot tell the colours apart. */
const shapes = {
  dot: <circle cx="5" cy="5" r="4" fill="currentColor" />,
  ring: <circle cx="5" cy="5" r="3.4" fill="none" stroke="currentColor" stroke-width="1.4" />,
  half: (
    <>
      <circle cx="5" cy="5" r="3.4" fill="none" stroke="currentColor" stroke-width="1.4" />
      <path d="M5 1.6a3.4 3.4 0 0 1 0 6.8z" fill="currentColor" />
    </>
  ),
  triangle: <path d="M5 .8L9.6 9H.4z" fill="currentColor" />,
  cross: <path d="M1.5 1.5l7 7M8.5 1.5l-7 7" stroke="currentColor" stroke-width="2" />,
  barred: (
    <>
      <circle cx="5" cy="5" r="3.8" fill="none" stroke="currentColor" stroke-width="1.4" />
      <path d="M2.4 7.6l5.2-5.2" stroke="currentColor" stroke-width="1.4" />
    </>
  ),
  dash: <path d="M1.5 5h7" stroke="currentColor" stroke-width="2" />,
} as const

export type Shape = keyof typeof shapes

export interface Status {
  readonly tone: Tone
  readonly shape: Shape
  readonly label: string
}

interface StatusBadgeProps {
  readonly status: Status
  /** Replaces the status's default text. */
  readonly children?: ComponentChildren
  readonly title?: string | undefined
  readonly chip?: boolean
}

export function StatusBadge({ status, children, title, chip }: StatusBadgeProps) {
  return (
    <span class={`${chip ? 'chip' : 'mark'} ${chip ? `tone-${status.tone}` : ''}`} title={title}>
      <svg viewBox="0 0 10 10" width="10" height="10" class={`tone-${status.tone}`} aria-hidden="true">
        {shapes[status.shape]}
      </svg>
      <span>{children ?? status.label}</span>
    </span>
  )
}
