import { useSignal } from '@preact/signals'
import { useState } from 'preact/hooks'
import type { ToolDetail, ToolPermission } from '../../../../src/admin/contract.ts'
import { queries } from '../../api/endpoints.ts'
import { useResource } from '../../api/resource.ts'
import { isAdmin } from '../../api/session.ts'
import { AccessBadge } from '../../components/access-badge.tsx'
import { Button } from '../../components/button.tsx'
import { CodeBlock } from '../../components/code-block.tsx'
import { CopyButton } from '../../components/copy-button.tsx'
import { ForeignText } from '../../components/foreign-text.tsx'
import { lazy } from '../../components/lazy.tsx'
import { Card, Page } from '../../components/page.tsx'
import { RangeStats } from '../../components/range-stats.tsx'
import { EmptyState, Loaded, Note } from '../../components/states.tsx'
import { StatusBadge } from '../../components/status-badge.tsx'
import { allowedStatus, deniedStatus, pinStatuses } from '../../components/statuses.ts'
import { Table } from '../../components/table.tsx'
import { Tabs } from '../../components/tabs.tsx'
import { pluralize } from '../../format/number.ts'
import { query, setQuery } from '../../routing/location.ts'
import { choiceParam, withQuery } from '../../routing/query.ts'
import { pathTo } from '../../routing/route.ts'
import { isObject, objectAt } from '../../schema-form/schema.ts'
import { SchemaView } from '../../schema-form/schema-view.tsx'
import { TryIt } from './try-it.tsx'

const ToolOverride = lazy('the button', async () => (await import('../../config-edit/tool-override.tsx')).ToolOverride)

const views = { about: 'Definition', try: 'Try it', who: 'Who may use it' } as const
const viewNames = ['about', 'try', 'who'] as const

export function ToolPage({ name }: { readonly name: string }) {
  const tool = useResource(queries.tool(name), name)
  const { data } = tool
  return (
    <Page
      title={name}
      heading={
        <span class="row">
          {name} <CopyButton text={name} label="Copy tool name" />
        </span>
      }
      note={data && <ToolSummary tool={data} />}
      back={{ href: pathTo('tools'), name: 'Tools' }}
    >
      <Loaded resource={tool} what={`the tool ${name}`}>
        {(data) => <ToolViews tool={data} onEdited={tool.reload} />}
      </Loaded>
    </Page>
  )
}

function ToolSummary({ tool }: { readonly tool: ToolDetail }) {
  return (
    <span class="row">
      <AccessBadge access={tool.access} />
      <StatusBadge status={pinStatuses[tool.pin]} chip />
      <span class="chip">{pluralize(tool.tokens, 'token')}</span>
      {tool.override && <span class="chip">{tool.override.hidden ? 'hidden' : 'changed for models'}</span>}
      <span>
        <code>{tool.tool}</code> on <a href={pathTo('servers', tool.server)}>{tool.server}</a>
      </span>
    </span>
  )
}

interface ToolViewsProps {
  readonly tool: ToolDetail
  onEdited(): void
}

function ToolViews({ tool, onEdited }: ToolViewsProps) {
  const view = choiceParam(query.value, 'view', viewNames)
  // Keep the form's value while other views are shown.
  const [draft] = useState(() => ({ value: undefined as unknown }))
  return (
    <>
      {tool.flags.length > 0 && (
        <Note tone="warn">
          <p>
            <strong>Review this definition before you trust it.</strong> Flags: {tool.flags.join(', ')}.
          </p>
          <p>
            {isAdmin.value ? (
              <a href={pathTo('pins', `${tool.server}.${tool.tool}`)}>See what changed and what was found</a>
            ) : (
              'An admin can see what changed and what was found'
            )}
            {tool.quarantined && '; no agent can see or use the tool until it is approved'}.
          </p>
        </Note>
      )}
      <Tabs
        label="Tool views"
        names={views}
        value={view}
        onChange={(next) => setQuery({ view: next === 'about' ? '' : next })}
      >
        {view === 'about' && <Definition tool={tool} onEdited={onEdited} />}
        {view === 'try' && <TryIt tool={tool} draft={draft} />}
        {view === 'who' && <Permissions tool={tool} />}
      </Tabs>
      {view === 'about' && <RangeStats by="tool" name={`${tool.server}.${tool.tool}`} />}
    </>
  )
}

function Definition({ tool, onEdited }: ToolViewsProps) {
  const raw = useSignal(false)
  const isForwarded = objectAt(tool.definition, '_meta')['dev.toolway/source'] === 'forwarded'
  const input = objectAt(tool.definition, 'inputSchema')
  const output = tool.definition.outputSchema
  return (
    <>
      <Card
        title={tool.title ?? 'Description'}
        side={
          <span class="row">
            {isAdmin.value && isForwarded && <ToolOverride tool={tool} onSaved={onEdited} />}
            <Button kind="tiny" aria-pressed={raw.value} onClick={() => (raw.value = !raw.value)}>
              As JSON
            </Button>
          </span>
        }
      >
        {raw.value ? (
          <CodeBlock text={JSON.stringify(tool.definition, null, 2)} label="Definition" />
        ) : (
          <ForeignText text={tool.description} class="description" />
        )}
      </Card>
      <div class="grid-2">
        <Card title="Input">
          <SchemaView schema={input} root={input} />
        </Card>
        <Card title="Output">
          {isObject(output) ? (
            <SchemaView schema={output} root={output} />
          ) : (
            <p class="quiet">No output schema. Results can be text, images or other content.</p>
          )}
        </Card>
      </div>
    </>
  )
}

function Permissions({ tool }: { readonly tool: ToolDetail }) {
  if (tool.agents.length === 0) {
    return (
      <div class="card">
        <EmptyState title="No agents are configured">
          <p>
            There is a single user, who may use everything. As soon as one agent is configured, everything that is not
            allowed is denied.
          </p>
          <a href={pathTo('policy')}>How to write rules</a>
        </EmptyState>
      </div>
    )
  }
  const qualifiedName = `${tool.server}.${tool.tool}`
  return (
    <div class="card">
      <Table<ToolPermission>
        label={`Who may use ${tool.name}`}
        rows={tool.agents}
        keyOf={({ agent }) => agent}
        columns={[
          { title: 'Agent', sortBy: ({ agent }) => agent, cell: ({ agent }) => <strong>{agent}</strong> },
          {
            title: 'Permission',
            sortBy: ({ allowed }) => String(allowed),
            cell: ({ allowed }) => <StatusBadge status={allowed ? allowedStatus : deniedStatus} />,
          },
          { title: 'Rule', sortBy: ({ rule }) => rule, cell: ({ rule }) => <code>{rule}</code> },
          {
            title: 'Explanation',
            alignEnd: true,
            cell: ({ agent }) => (
              <a href={withQuery(pathTo('policy'), { view: 'why', agent, tool: qualifiedName })}>
                Why<span class="hidden"> for {agent}</span>
              </a>
            ),
          },
        ]}
      />
    </div>
  )
}
