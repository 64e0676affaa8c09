import type { ToolPage, ToolView } from '../../../../src/serve/admin/contract.ts'
import { queries } from '../../api/endpoints.ts'
import { type PagedList, usePages } from '../../api/paged.ts'
import { useReloadOnToolChange, useResource } from '../../api/resource.ts'
import { formatCount } from '../../format/number.ts'
import { Access } from '../../parts/access.tsx'
import { Code } from '../../parts/code.tsx'
import { Choose, Search } from '../../parts/filters.tsx'
import { pinLooks } from '../../parts/looks.ts'
import { Mark } from '../../parts/mark.tsx'
import { More } from '../../parts/more.tsx'
import { Name } from '../../parts/name.tsx'
import { Page } from '../../parts/page.tsx'
import { Empty, Loaded } from '../../parts/states.tsx'
import { type Column, RowLink, Table } from '../../parts/table.tsx'
import { query } from '../../routing/location.ts'
import { pathTo } from '../../routing/route.ts'

export function Tools() {
  const text = query.value.get('q') ?? ''
  const server = query.value.get('server') ?? ''
  const filter = { query: text, server }
  const tools = usePages<ToolPage>((cursor) => queries.tools({ ...filter, cursor }), JSON.stringify(filter))
  useReloadOnToolChange(tools.first)
  const servers = useResource(queries.servers, 'servers')
  return (
    <Page title="Tools" note="Tools as agents see them, with the tokens that each definition takes.">
      <div class="filters">
        <Search label="Search tools" />
        <Choose label="Server" name="server" options={servers.data?.map(({ name }) => name) ?? []} all="all" />
      </div>
      <div class="card">
        <Loaded of={tools.first} what="the tools">
          {() => <List tools={tools} filtered={text !== '' || server !== ''} />}
        </Loaded>
      </div>
    </Page>
  )
}

function List({ tools, filtered }: { readonly tools: PagedList<ToolPage>; readonly filtered: boolean }) {
  const rows = tools.pages.flatMap((page) => page.tools)
  if (rows.length === 0) return filtered ? <NoneFits /> : <NoTools />
  return (
    <>
      <Table label="Tools" rows={rows} keyOf={({ name }) => name} columns={toolColumns} />
      <More of={tools} shown={rows.length} total={tools.pages[0]?.total ?? rows.length} things="tools" />
    </>
  )
}

function NoneFits() {
  return (
    <Empty title="No matching tools">
      <p class="quiet">The search matches names and descriptions. Try fewer words, or search all servers.</p>
    </Empty>
  )
}

function NoTools() {
  return (
    <Empty title="No tools">
      <p>
        Either no server has connected yet, or your agent may not use any of their tools. Check the{' '}
        <a href={pathTo('servers')}>servers</a> and the <a href={pathTo('policy')}>policy</a>.
      </p>
      <Code text="toolway tools list" label="Command to list the tools" />
    </Empty>
  )
}

const toolColumns: readonly Column<ToolView>[] = [
  {
    title: 'Tool',
    clip: true,
    cell: ({ name, description }) => (
      <>
        <RowLink href={pathTo('tools', name)}>
          <Name of={name} />
        </RowLink>
        <span class="sub">{description}</span>
      </>
    ),
  },
  { title: 'Server', from: 'middle', cell: ({ server }) => server },
  { title: 'Access', cell: ({ access }) => <Access access={access} /> },
  {
    title: 'Definition',
    from: 'middle',
    cell: ({ pin, flags }) => (
      <>
        <Mark look={pinLooks[pin]} />
        {flags.length > 0 && (
          <span class="sub tone-warn" title={flags.join('\n')}>
            {flags.length === 1 ? flags[0] : `${flags.length} flags`}
          </span>
        )}
      </>
    ),
  },
  { title: 'Tokens', end: true, cell: ({ tokens }) => formatCount(tokens) },
]
