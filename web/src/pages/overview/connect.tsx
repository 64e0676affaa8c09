import { useSignal } from '@preact/signals'
import { CodeBlock } from '../../components/code-block.tsx'
import { CopyButton } from '../../components/copy-button.tsx'
import { Card } from '../../components/page.tsx'
import { Tabs } from '../../components/tabs.tsx'
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

/** The endpoint, and how to connect each client to it. */
export function ConnectTabs({ endpoint }: ConnectProps) {
  const clients = clientsFor(endpoint)
  const selected = useSignal('claude')
  const client = clients[selected.value]
  const names = Object.fromEntries(Object.entries(clients).map(([key, { name }]) => [key, name]))
  return (
    <div class="stack tight">
      <span class="row">
        <code>{endpoint}</code>
        <CopyButton text={endpoint} label="Copy address" />
      </span>
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
