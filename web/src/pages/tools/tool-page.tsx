import { useState } from 'preact/hooks'
import type { ToolDetail } from '../../../../src/serve/admin/contract.ts'
import { read } from '../../api/endpoints.ts'
import { useResource } from '../../api/resource.ts'
import { counted } from '../../format/number.ts'
import { Access } from '../../parts/access.tsx'
import { Copy } from '../../parts/copy.tsx'
import { pinLooks } from '../../parts/looks.ts'
import { Mark } from '../../parts/mark.tsx'
import { Page } from '../../parts/page.tsx'
import { Loaded, Note } from '../../parts/states.tsx'
import { Tabs } from '../../parts/tabs.tsx'
import { query, setQuery } from '../../routing/location.ts'
import { wordIn } from '../../routing/query.ts'
import { pathTo } from '../../routing/route.ts'
import { FigureTiles } from '../figures.tsx'
import { Definition } from './definition.tsx'
import { Permissions } from './permissions.tsx'
import { TryIt } from './try-it.tsx'

const views = { about: 'Definition', try: 'Try it', who: 'Who may use it' } as const
const words = ['about', 'try', 'who'] as const

export function ToolPage({ name }: { readonly name: string }) {
  const tool = useResource(read.tool(name), name)
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
      <span class="chip">{counted(tool.tokens, 'token')}</span>
      <span>
        <code>{tool.tool}</code> on <a href={pathTo('servers', tool.server)}>{tool.server}</a>
      </span>
    </span>
  )
}

function Views({ tool }: { readonly tool: ToolDetail }) {
  const view = wordIn(query.value, 'view', words)
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
