import { useSignal } from '@preact/signals'
import type { ConfigEdit, FoundServerView } from '../../../src/serve/admin/contract.ts'
import { queries } from '../api/endpoints.ts'
import { useResource } from '../api/resource.ts'
import { EntryEditor } from './entry-editor.tsx'
import { ReviewChange } from './review-change.tsx'

const placeholder = `npx -y @modelcontextprotocol/server-filesystem ./files
https://mcp.example.com/mcp
{ "mcpServers": { … } }`

interface AddServerProps {
  onClose(): void
  onSaved(): void
}

/** Adds a server: from a command, a URL, the configuration of any MCP client, or the clients on this machine. */
export function AddServer({ onClose, onSaved }: AddServerProps) {
  const found = useResource(queries.foundServers, 'found')
  const chosen = useSignal<ConfigEdit | undefined>(undefined)
  if (chosen.value) {
    return <ReviewChange title="Import a server" edit={chosen.value} onClose={onClose} onSaved={onSaved} />
  }
  return (
    <EntryEditor
      title="Add a server"
      label="Command, URL, or the configuration of any MCP client"
      placeholder={placeholder}
      nameLabel="Name (optional)"
      testable
      editOf={(input, name) => ({ add: { input, ...(name !== '' && { name }) } })}
      onClose={onClose}
      onSaved={onSaved}
    >
      <p class="quiet small">Tokens and passwords are stored in private files, not in the configuration.</p>
      <FoundServers
        servers={found.data ?? []}
        onChoose={({ file, name }) => {
          chosen.value = { import: [{ file, name }] }
        }}
      />
    </EntryEditor>
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
      <summary>Servers of the editors on this machine ({importable.length})</summary>
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
