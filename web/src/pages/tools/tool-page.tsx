import { useSignal } from '@preact/signals'
import { useState } from 'preact/hooks'
import type { ToolDetail, ToolPermission } from '../../../../src/serve/admin/contract.ts'
import { queries } from '../../api/endpoints.ts'
import { useResource } from '../../api/resource.ts'
import { pluralize } from '../../format/number.ts'
import { Access } from '../../parts/access.tsx'
import { Code } from '../../parts/code.tsx'
import { Copy } from '../../parts/copy.tsx'
import { allowedLook, deniedLook, pinLooks } from '../../parts/looks.ts'
import { Mark } from '../../parts/mark.tsx'
import { Card, Page } from '../../parts/page.tsx'
import { Empty, Loaded, Note } from '../../parts/states.tsx'
import { Table } from '../../parts/table.tsx'
import { Tabs } from '../../parts/tabs.tsx'
import { query, setQuery } from '../../routing/location.ts'
import { choiceParam, withQuery } from '../../routing/query.ts'
import { pathTo } from '../../routing/route.ts'
import { isObject, objectAt } from '../../schema-form/schema.ts'
import { SchemaView } from '../../schema-form/schema-view.tsx'
import { FigureTiles } from '../figures.tsx'
import { TryIt } from './try-it.tsx'

const views = { about: 'Definition', try: 'Try it', who: 'Who may use it' } as const
const words = ['about', 'try', 'who'] as const

export function ToolPage({ name }: { readonly name: string }) {
  const tool = useResource(queries.tool(name), name)
  const { data } = tool
  return (
    <Page
      title={name}
      heading={
        <span class="row">
          {name} <Copy text={name} label="Copy tool name" />
        </span>
      }
      note={data && <Line tool={data} />}
      back={{ href: pathTo('tools'), name: 'Tools' }}
    >
      <Loaded of={tool} what={`the tool ${name}`}>
        {(data) => <Views tool={data} />}
      </Loaded>
    </Page>
  )
}

function Line({ tool }: { readonly tool: ToolDetail }) {
  return (
    <span class="row">
      <Access access={tool.access} />
      <Mark look={pinLooks[tool.pin]} chip />
      <span class="chip">{pluralize(tool.tokens, 'token')}</span>
      <span>
        <code>{tool.tool}</code> on <a href={pathTo('servers', tool.server)}>{tool.server}</a>
      </span>
    </span>
  )
}

function Views({ tool }: { readonly tool: ToolDetail }) {
  const view = choiceParam(query.value, 'view', words)
  // Keeps the form's value while other views are shown.
  const [draft] = useState(() => ({ value: undefined as unknown }))
  return (
    <>
      {tool.flags.length > 0 && (
        <Note tone="warn">
          <p>
            <strong>Review this definition before you trust it.</strong> Flags: {tool.flags.join(', ')}.
          </p>
          <p>
            <code>{`toolway pins show ${tool.server}.${tool.tool}`}</code> shows what was found and what changed
            {tool.pin === 'quarantined' && (
              <>
                ; the tool is blocked until you run <code>{`toolway pins approve ${tool.server}.${tool.tool}`}</code>
              </>
            )}
            .
          </p>
        </Note>
      )}
      <Tabs
        label="Tool views"
        names={views}
        value={view}
        onChange={(next) => setQuery({ view: next === 'about' ? '' : next })}
      >
        {view === 'about' && <Definition tool={tool} />}
        {view === 'try' && <TryIt tool={tool} draft={draft} />}
        {view === 'who' && <Permissions tool={tool} />}
      </Tabs>
      {view === 'about' && <FigureTiles of={tool.calls} label={`Statistics of ${tool.name}`} />}
    </>
  )
}

function Definition({ tool }: { readonly tool: ToolDetail }) {
  const raw = useSignal(false)
  const input = objectAt(tool.definition, 'inputSchema')
  const output = tool.definition.outputSchema
  return (
    <>
      <Card
        title={tool.title ?? 'Description'}
        side={
          <button type="button" class="button tiny" aria-pressed={raw.value} onClick={() => (raw.value = !raw.value)}>
            As JSON
          </button>
        }
      >
        {raw.value ? (
          <Code text={JSON.stringify(tool.definition, null, 2)} label="Definition" />
        ) : (
          <p class="description">{tool.description}</p>
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
        <Empty title="No agents are configured">
          <p>
            There is a single user, who may use everything. As soon as one agent is configured, everything that is not
            allowed is denied.
          </p>
          <a href={pathTo('policy')}>How to write rules</a>
        </Empty>
      </div>
    )
  }
  const asked = `${tool.server}.${tool.tool}`
  return (
    <div class="card">
      <Table<ToolPermission>
        label={`Who may use ${tool.name}`}
        rows={tool.agents}
        keyOf={({ agent }) => agent}
        columns={[
          { title: 'Agent', cell: ({ agent }) => <strong>{agent}</strong> },
          { title: 'Permission', cell: ({ allowed }) => <Mark look={allowed ? allowedLook : deniedLook} /> },
          { title: 'Rule', cell: ({ rule }) => <code>{rule}</code> },
          {
            title: 'Explanation',
            end: true,
            cell: ({ agent }) => (
              <a href={withQuery(pathTo('policy'), { view: 'why', agent, tool: asked })}>
                Why<span class="hidden"> for {agent}</span>
              </a>
            ),
          },
        ]}
      />
    </div>
  )
}
