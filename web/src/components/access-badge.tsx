import type { ToolView } from '../../../src/admin/contract.ts'
import { Icon } from './icon.tsx'

const tones = { read: '', write: 'tone-warn', destructive: 'tone-bad' } as const

const hints = {
  read: 'Only reads data.',
  write: 'May change data.',
  destructive: 'May make irreversible changes, such as overwriting, deleting or sending data.',
} as const

export function AccessBadge({ access }: { readonly access: ToolView['access'] }) {
  return (
    <span class={`chip ${tones[access]}`} title={hints[access]}>
      <Icon name={access} size={13} />
      {access}
    </span>
  )
}
