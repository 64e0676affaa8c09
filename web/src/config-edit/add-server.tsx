import { useSignal } from '@preact/signals'
import type { ConfigEdit, FoundServerView } from '../../../src/admin/contract.ts'
import { queries } from '../api/endpoints.ts'
import { useResource } from '../api/resource.ts'
import { EditDialog, NameField, TextArea } from './edit-dialog.tsx'
import { RegistrySearch } from './registry-search.tsx'
import { ReviewChange } from './review-change.tsx'
import { type ServerDraft, ServerFormDialog } from './server-form.tsx'

const placeholder = `npx -y @modelcontextprotocol/server-filesystem ./files
https://mcp.example.com/mcp
{ "mcpServers": { … } }`

const empty: ServerDraft = { title: 'Add a server', name: '', definition: {} }

interface AddServerProps {
  onClose(): void
  onSaved(): void
}

/**
 * Adds a server: from a command, a URL, the configuration of any MCP client, the clients on this machine, the MCP
 * registry or a form.
 */
export function AddServer({ onClose, onSaved }: AddServerProps) {
  const found = useResource(queries.foundServers, 'found')
  const form = useResource(queries.serverForm, 'server form')
  const chosen = useSignal<ConfigEdit | undefined>(undefined)
  const draft = useSignal<ServerDraft | undefined>(undefined)
  const input = useSignal('')
  const name = useSignal('')
  if (chosen.value) {
    return <ReviewChange title="Import a server" edit={chosen.value} onClose={onClose} onSaved={onSaved} />
  }
  if (draft.value) return <ServerFormDialog draft={draft.value} onClose={onClose} onSaved={onSaved} />
  const id = name.value.trim()
  const add = { input: input.value, ...(id !== '' && { name: id }) }
  const registry = form.data?.registry ?? undefined
  return (
    <EditDialog
      title="Add a server"
      edit={input.value.trim() === '' ? undefined : { add }}
      fields={add}
      testable
      onClose={onClose}
      onSaved={onSaved}
    >
      <TextArea
        label="Command, URL, or the configuration of any MCP client"
        placeholder={placeholder}
        value={input.value}
        onChange={(next) => (input.value = next)}
      />
      <NameField label="Name (optional)" value={name.value} onChange={(next) => (name.value = next)} />
      <p class="row spread">
        <span class="quiet small">Tokens and passwords are stored in private files, not in the configuration.</span>
        <button type="button" class="button tiny" onClick={() => (draft.value = empty)}>
          Use a form
        </button>
      </p>
      <FoundServers
        servers={found.data ?? []}
        onChoose={({ file, name }) => {
          chosen.value = { import: [{ file, name }] }
        }}
      />
      {registry !== undefined && (
        <RegistrySearch
          registry={registry}
          onChoose={({ name, definition, missing }) => {
            draft.value = { title: 'Add a server', name, definition, missing }
          }}
        />
      )}
    </EditDialog>
  )
}

interface FoundServersProps {
  readonly servers: readonly FoundServerView[]
  onChoose(server: FoundServerView): void
}

function FoundServers({ servers, onChoose }: FoundServersProps) {
  const importable = servers.filter(({ present, problem }) => !present && problem === null)
  if (importable.length === 0) return null
  return (
    <details>
      <summary>Servers from editors on this machine ({importable.length})</summary>
      <ul class="stack tight">
        {importable.map((server) => (
          <li key={`${server.file} ${server.name}`} class="row spread">
            <span>
              <strong>{server.name}</strong> <span class="quiet">{server.client}</span>
              <br />
              <code>{server.target}</code>
            </span>
            <button type="button" class="button tiny" onClick={() => onChoose(server)}>
              Import {server.name}
            </button>
          </li>
        ))}
      </ul>
    </details>
  )
}
