import { useSignal } from '@preact/signals'
import { Button } from '../../components/button.tsx'
import { CopyButton } from '../../components/copy-button.tsx'
import { SearchField } from '../../components/filters.tsx'
import { JsonTree } from '../../components/json-tree.tsx'
import { Card } from '../../components/page.tsx'
import { query } from '../../routing/location.ts'
import { filterTree } from './filter-tree.ts'

/** The effective configuration as a searchable tree. */
export function ConfigTree({ config }: { readonly config: Readonly<Record<string, unknown>> }) {
  const text = query.value.get('q') ?? ''
  const matching = filterTree(config, text)
  const expanded = useSignal(false)
  const open = expanded.value || text !== '' ? 99 : 1
  return (
    <Card
      title="Effective configuration"
      side={
        <div class="row">
          <SearchField label="Search keys and values" />
          <Button kind="tiny" aria-pressed={expanded.value} onClick={() => (expanded.value = !expanded.value)}>
            {expanded.value ? 'Collapse all' : 'Expand all'}
          </Button>
          <CopyButton text={JSON.stringify(config, null, 2)} label="Copy the configuration as JSON" />
        </div>
      }
    >
      <p class="quiet small">
        Includes all defaults. Durations are in milliseconds, sizes in bytes; secrets are masked.
      </p>
      {matching === undefined ? (
        <p>No key or value contains “{text}”.</p>
      ) : (
        <JsonTree key={`${text} ${open}`} value={matching} open={open} />
      )}
    </Card>
  )
}
