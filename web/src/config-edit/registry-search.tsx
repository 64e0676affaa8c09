import { useSignal } from '@preact/signals'
import type { RegistryServerView } from '../../../src/admin/contract.ts'
import { queries } from '../api/endpoints.ts'
import { withNotice } from '../components/notices.tsx'
import { pluralize } from '../format/number.ts'

interface RegistrySearchProps {
  readonly registry: string
  onChoose(choice: RegistryServerView['choices'][number]): void
}

/** Searches the MCP registry. It is asked only when the operator searches. */
export function RegistrySearch({ registry, onChoose }: RegistrySearchProps) {
  const text = useSignal('')
  const busy = useSignal(false)
  const found = useSignal<readonly RegistryServerView[] | undefined>(undefined)
  const search = async () => {
    if (busy.value || text.value.trim() === '') return
    busy.value = true
    found.value = await withNotice(
      () => queries.registry(text.value.trim())(undefined),
      (servers) => `Found ${pluralize(servers.length, 'server')}.`,
    )
    busy.value = false
  }
  return (
    <details>
      <summary>Search the MCP registry</summary>
      <div class="stack tight">
        <p class="quiet small">
          <code>{registry}</code>. Anyone can publish there: check what you add.
        </p>
        <div class="row">
          <input
            class="input"
            type="search"
            aria-label="Search the MCP registry"
            value={text.value}
            onInput={({ currentTarget }) => (text.value = currentTarget.value)}
            onKeyDown={(event) => {
              if (event.key !== 'Enter') return
              // Enter would review the rest of the form.
              event.preventDefault()
              void search()
            }}
          />
          <button type="button" class="button" disabled={busy.value} onClick={() => void search()}>
            {busy.value ? 'Searching…' : 'Search'}
          </button>
        </div>
        {found.value?.length === 0 && <p class="quiet">No server matches.</p>}
        <ul class="stack tight">
          {found.value?.map(({ name, version, description, choices }) => (
            <li key={name} class="stack tight">
              <span>
                <strong>{name}</strong> <span class="quiet">{version}</span>
                <br />
                {description}
              </span>
              {choices.length === 0 && <span class="quiet">Toolway cannot run any of its packages.</span>}
              {choices.map((choice) => (
                <span key={choice.label} class="row spread">
                  <code>{choice.label}</code>
                  <button
                    type="button"
                    class="button tiny"
                    aria-label={`Use ${choice.label}`}
                    onClick={() => onChoose(choice)}
                  >
                    Use
                  </button>
                </span>
              ))}
            </li>
          ))}
        </ul>
      </div>
    </details>
  )
}
