import { useSignal } from '@preact/signals'
import type { IssuedKeyView, KeysView, KeyView } from '../../../../src/admin/contract.ts'
import { actions, queries } from '../../api/endpoints.ts'
import { useResource } from '../../api/resource.ts'
import { session } from '../../api/session.ts'
import { ActionButton } from '../../components/action-button.tsx'
import { Button } from '../../components/button.tsx'
import { withNotice } from '../../components/notices.tsx'
import { Card, Page } from '../../components/page.tsx'
import { EmptyState, Loaded, Note } from '../../components/states.tsx'
import { type Column, Table } from '../../components/table.tsx'
import { RelativeTime } from '../../components/times.tsx'
import { withQuery } from '../../routing/query.ts'
import { pathTo } from '../../routing/route.ts'
import { CreateKey } from './create-key.tsx'
import { RotateKey } from './rotate-key.tsx'
import { ShownOnce } from './shown-once.tsx'

/** API keys: create, rotate and revoke them. */
export function Keys() {
  const keys = useResource(queries.keys, 'keys', { pollEveryMs: 15_000 })
  const creating = useSignal(false)
  const rotating = useSignal<KeyView | undefined>(undefined)
  const issued = useSignal<IssuedKeyView | undefined>(undefined)
  const show = (made: IssuedKeyView) => {
    creating.value = false
    rotating.value = undefined
    issued.value = made
    keys.reload()
  }
  return (
    <Page
      title="Keys"
      note="API keys identify callers and say which agents they may act as."
      actions={
        <Button kind="primary" icon="add" onClick={() => (creating.value = true)}>
          Create a key
        </Button>
      }
    >
      <Loaded resource={keys} what="the keys">
        {(data) => <KeyTable data={data} rotate={(key) => (rotating.value = key)} onChange={keys.reload} />}
      </Loaded>
      {creating.value && (
        <CreateKey
          agents={keys.data?.agents ?? []}
          endpoints={keys.data?.endpoints ?? []}
          onClose={() => (creating.value = false)}
          onCreated={show}
        />
      )}
      {rotating.value && (
        <RotateKey apiKey={rotating.value} onClose={() => (rotating.value = undefined)} onRotated={show} />
      )}
      {issued.value && <ShownOnce issued={issued.value} onClose={() => (issued.value = undefined)} />}
    </Page>
  )
}

interface KeyTableProps {
  readonly data: KeysView
  rotate(key: KeyView): void
  onChange(): void
}

function KeyTable({ data, rotate, onChange }: KeyTableProps) {
  const { keys, file, problem } = data
  const columns: readonly Column<KeyView>[] = [...facts, { title: 'Actions', alignEnd: true, cell: actionsOf }]
  function actionsOf(key: KeyView) {
    if (key.source === 'configuration') return <span class="quiet">auth.keys</span>
    return (
      <span class="row end">
        <Button kind="tiny" aria-label={`Rotate ${key.id}`} title="Create a new secret" onClick={() => rotate(key)}>
          Rotate
        </Button>
        <Revoke id={key.id} onDone={onChange} />
      </span>
    )
  }
  return (
    <>
      {problem !== null && (
        <Note tone="bad">
          <p>
            <strong>The keys in the key file are not accepted.</strong> {problem}
          </p>
        </Note>
      )}
      {keys.length === 0 ? (
        <div class="card">
          <EmptyState title="No keys yet">
            <p>
              Without keys, callers use the gateway's token. Create a key for each caller, so that the audit log names
              it and it can be revoked separately.
            </p>
          </EmptyState>
        </div>
      ) : (
        <Card title="API keys" flush>
          <Table label="Keys" rows={keys} keyOf={({ id, source }) => `${source} ${id}`} columns={columns} />
        </Card>
      )}
      <p class="quiet small">
        Toolway stores only hashes, in <code>{file}</code>. Keys that come from the configuration can be changed only in{' '}
        <code>auth.keys</code> of the <a href={pathTo('config')}>configuration</a>. A change takes effect within a
        second; with several processes, the last use may be up to a minute out of date.
      </p>
    </>
  )
}

const facts: readonly Column<KeyView>[] = [
  {
    title: 'Name',
    sortBy: ({ id }) => id,
    cell: ({ id, admin, endpoints, source }) => (
      <>
        <a href={withQuery(pathTo('audit'), { principal: `key:${id}` })} title="Its operations in the audit log">
          {id}
        </a>
        {admin && <span class="sub">admin</span>}
        {endpoints && <span class="sub">only for {endpoints.join(', ')}</span>}
        {source === 'configuration' && <span class="sub">from the configuration</span>}
      </>
    ),
  },
  {
    title: 'Agents',
    sortBy: ({ agents }) => agents.join(', '),
    minScreen: 'middle',
    truncate: true,
    cell: ({ agents }) => (agents.length === 0 ? 'default agent' : agents.includes('*') ? 'all' : agents.join(', ')),
  },
  {
    title: 'Created',
    sortBy: ({ created }) => created,
    descendingFirst: true,
    minScreen: 'wide',
    cell: ({ created }) => (created === null ? '' : <RelativeTime at={created} />),
  },
  {
    title: 'Expires',
    sortBy: ({ expires }) => expires,
    cell: ({ expires, expired }) => (expired ? <span class="tone-bad">expired</span> : <RelativeTime at={expires} />),
  },
  {
    title: 'Last used',
    sortBy: ({ lastUsed }) => lastUsed,
    descendingFirst: true,
    minScreen: 'middle',
    cell: ({ lastUsed, previous }) => (
      <>
        <RelativeTime at={lastUsed} />
        {previous && (
          <span class="sub">
            old secret expires <RelativeTime at={previous.until} />, used <RelativeTime at={previous.lastUsed} />
          </span>
        )}
      </>
    ),
  },
]

function Revoke({ id, onDone }: { readonly id: string; onDone(): void }) {
  const isOwn = typeof session.value === 'object' && session.value.principal === `key:${id}`
  const text = `Callers that use it are refused within a second. This cannot be undone.${isOwn ? ' You are signed in with this key: you will be signed out.' : ''}`
  const run = async () => {
    await withNotice(
      () => actions.revokeKey(id),
      () => `Revoked ${id}.`,
    )
    onDone()
  }
  return (
    <ActionButton
      name="Revoke"
      label={`Revoke ${id}`}
      kind="danger tiny"
      confirm={{ title: `Revoke ${id}?`, text }}
      run={run}
    />
  )
}
