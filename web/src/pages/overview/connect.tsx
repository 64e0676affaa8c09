import { useSignal } from '@preact/signals'
import { queries } from '../../api/endpoints.ts'
import { useResource } from '../../api/resource.ts'
import { CodeBlock } from '../../components/code-block.tsx'
import { CopyButton } from '../../components/copy-button.tsx'
import { Card } from '../../components/page.tsx'
import { SelectField } from '../../components/select-field.tsx'
import { Tabs } from '../../components/tabs.tsx'
import { pluralize } from '../../format/number.ts'
import { clientsFor } from './clients.ts'

interface ConnectProps {
  readonly endpoint: string
}

export function Connect({ endpoint }: ConnectProps) {
  return (
    <Card title="Connect a client">
      <ConnectTabs endpoint={endpoint} />
    </Card>
  )
}

/** An endpoint to choose, and how to connect each client to it. */
export function ConnectTabs({ endpoint }: ConnectProps) {
  const endpoints = useResource(queries.endpoints, 'endpoints').data ?? []
  const name = useSignal('')
  const chosen = endpoints.find((one) => one.name === name.value)
  const url = chosen?.url ?? endpoint
  const clients = clientsFor(url, chosen && `toolway-${chosen.name}`)
  const selected = useSignal('claude')
  const client = clients[selected.value]
  const names = Object.fromEntries(Object.entries(clients).map(([key, { name }]) => [key, name]))
  return (
    <div class="stack tight">
      {endpoints.length > 0 && (
        <SelectField
          label="Endpoint"
          value={name.value}
          options={[['', 'all tools'], ...endpoints.map((one) => one.name)]}
          onChange={(value) => (name.value = value)}
        />
      )}
      <span class="row">
        <code>{url}</code>
        <CopyButton text={url} label="Copy address" />
      </span>
      {chosen && (
        <p class="quiet small">
          {chosen.description} {pluralize(chosen.tools, 'tool')}, {pluralize(chosen.tokens.exposed, 'token')}, expose{' '}
          {chosen.expose}
          {chosen.agent !== null && <>, as the agent {chosen.agent}</>}.
        </p>
      )}
      <Tabs label="Client" names={names} value={selected.value} onChange={(key) => (selected.value = key)}>
        {client && (
          <div class="stack tight">
            <p class="quiet small">{client.target}</p>
            <CodeBlock text={client.text} label={`For ${client.name}`} />
            <p class="quiet small">
              <code>TOOLWAY_TOKEN</code> is the token that <code>toolway serve</code> prints.{' '}
              <code>toolway connect</code> edits the client's configuration for you, with preview and undo.
            </p>
          </div>
        )}
      </Tabs>
    </div>
  )
}
