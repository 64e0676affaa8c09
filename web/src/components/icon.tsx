/** The icons' paths, in a 16×16 view box. Icons are decorative: each one is next to text or in a labelled control. */
const paths = {
  overview: 'M2.5 12.5a6 6 0 1 1 11 0M8 9.5l2.5-3',
  servers: 'M2.5 3h11v4h-11zM2.5 9h11v4h-11zM5 5h.01M5 11h.01',
  tools: 'M9.8 4.2a2.7 2.7 0 0 1 3.6-1l-1.7 1.7v1.4h1.4l.4-.4a2.7 2.7 0 0 1-3.9 3L5 13.5A1.4 1.4 0 0 1 3 11.5l4.6-4.7',
  skills: 'M2.5 3h4.5a1 1 0 0 1 1 1v9.5a1 1 0 0 0-1-1H2.5zM13.5 3H9a1 1 0 0 0-1 1v9.5a1 1 0 0 1 1-1h4.5z',
  pins: 'M5.5 2h5l-.7 4.5 2.2 2.2H4l2.2-2.2zM8 8.7V14',
  chat: 'M2.5 3h11v8h-6l-3 2.5V11h-2zM5.5 6h5M5.5 8.2h3',
  calls: 'M1.5 8h3l2-5 3 10 2-5h3',
  approvals: 'M2.5 3h11v8h-6l-3 2.5V11h-2zM5.5 6.8l1.8 1.8L10.5 5.4',
  policy: 'M8 1.8l5 1.9v4c0 3-2 5.3-5 6.5-3-1.2-5-3.5-5-6.5v-4zM5.7 8l1.7 1.7 3-3.2',
  keys: 'M5.5 6.5a3 3 0 1 0 0 5.9 3 3 0 0 0 0-5.9zM7.6 7.4L13 2M10.8 4.2l2 2',
  audit: 'M4 2h6l2.5 2.5V14H4zM6 6.5h4M6 9h4M6 11.5h2.5',
  config: 'M2 4.5h6M11 4.5h3M2 11.5h3M8 11.5h6M9.5 2.8v3.4M6.5 9.8v3.4',
  copy: 'M5.5 5.5V2.5h8v8h-3M2.5 5.5h8v8h-8z',
  check: 'M3 8.5l3.2 3.2L13 4.8',
  close: 'M3.5 3.5l9 9M12.5 3.5l-9 9',
  menu: 'M2 4h12M2 8h12M2 12h12',
  light:
    'M8 5.2a2.8 2.8 0 1 0 0 5.6 2.8 2.8 0 0 0 0-5.6zM8 1.3v1.4M8 13.3v1.4M1.3 8h1.4M13.3 8h1.4M3.3 3.3l1 1M11.7 11.7l1 1M12.7 3.3l-1 1M4.3 11.7l-1 1',
  dark: 'M13.5 9.8A6 6 0 0 1 6.2 2.5a6 6 0 1 0 7.3 7.3z',
  system: 'M2 3h12v8H2zM5.5 13.5h5M8 11v2.5',
  search: 'M7 2.5a4.5 4.5 0 1 0 0 9 4.5 4.5 0 0 0 0-9zM10.3 10.3l3.2 3.2',
  right: 'M6 3.5L10.5 8 6 12.5',
  up: 'M8 12.5V3.5M4.5 7L8 3.5 11.5 7',
  down: 'M8 3.5v9M4.5 9L8 12.5 11.5 9',
  pause: 'M5.5 3.5v9M10.5 3.5v9',
  play: 'M5 3.2v9.6L12.5 8z',
  refresh: 'M13.5 8a5.5 5.5 0 1 1-1.8-4.1M13.5 2v3.2h-3.2',
  warning: 'M8 2.3l6 10.9H2zM8 6.5v3.2M8 11.4h.01',
  info: 'M8 2a6 6 0 1 0 0 12A6 6 0 0 0 8 2zM8 7.3v3.4M8 5.2h.01',
  help: 'M8 2a6 6 0 1 0 0 12A6 6 0 0 0 8 2zM6.3 6.3a1.7 1.7 0 1 1 2.5 1.5c-.6.3-.8.6-.8 1.2M8 11h.01',
  read: 'M1.5 8S4 3.8 8 3.8 14.5 8 14.5 8 12 12.2 8 12.2 1.5 8 1.5 8zM8 6.3a1.7 1.7 0 1 0 0 3.4 1.7 1.7 0 0 0 0-3.4z',
  write: 'M3 13l.6-2.8L10.8 3l2.2 2.2-7.2 7.2zM9.3 4.5l2.2 2.2',
  destructive: 'M5.4 2h5.2L14 5.4v5.2L10.6 14H5.4L2 10.6V5.4zM8 5v3.5M8 10.8h.01',
  add: 'M8 3v10M3 8h10',
  leave: 'M6.5 2.5h-4v11h4M10 5l3 3-3 3M13 8H6',
} as const

export type IconName = keyof typeof paths

export function Icon({ name, size = 16 }: { readonly name: IconName; readonly size?: number }) {
  return (
    <svg
      viewBox="0 0 16 16"
      width={size}
      height={size}
      fill="none"
      stroke="currentColor"
      stroke-width="1.5"
      stroke-linecap="round"
      stroke-linejoin="round"
      aria-hidden="true"
    >
      <path d={paths[name]} />
    </svg>
  )
}

export function Logo() {
  return (
    <svg
      viewBox="0 0 32 32"
      fill="none"
      stroke="currentColor"
      stroke-width="3.4"
      stroke-linecap="round"
      aria-hidden="true"
    >
      <path d="M3 6c10 0 9 10 16 10h10M3 26c10 0 9-10 16-10M3 16h16" />
    </svg>
  )
}
