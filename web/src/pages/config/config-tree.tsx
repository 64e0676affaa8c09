import { useSignal } from '@preact/signals'
import { Copy } from '../../parts/copy.tsx'
import { Search } from '../../parts/filters.tsx'
import { JsonTree } from '../../parts/json-tree.tsx'
import { Card } from '../../parts/page.tsx'
import { query } from '../../routing/location.ts'
import { narrowed } from './narrow.ts'

/** The effective configuration as a searchable tree. */
export function ConfigTree({ config }: { readonly config: Readonly<Record<string, unknown>> }) {
  const text = query.value.get('q') ?? ''
  const found = narrowed(config, text)
  const expanded = useSignal(false)
  const open = expanded.value || text !== '' ? 99 : 1
  return (
    <Card
      title="Effective configuration"
      side={
        <span class="row">
          <Search label="Search keys and values" />
          <button
            type="button"
            class="button tiny"
            aria-pressed={expanded.value}
            onClick={() => (expanded.value = !expanded.value)}
          >
            {expanded.value ? 'Collapse all' : 'Expand all'}
          </button>
          <Copy text={JSON.stringify(config, null, 2)} label="Copy the configuration as JSON" />
        </span>
      }
    >
      <p class="quiet small">
        Includes all defaults. Durations are in milliseconds, sizes in bytes; secrets are masked.
      </p>
      {found === undefined ? (
        <p>No key or value contains “{text}”.</p>
      ) : (
        <JsonTree key={`${text} ${open}`} value={found} open={open} />
      )}
    </Card>
  )
}
