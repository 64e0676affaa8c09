import type { ToolPage, ToolView } from '../../../../src/admin/contract.ts'
import { queries } from '../../api/endpoints.ts'
import { usePages } from '../../api/paged.ts'
import { useReloadOnToolChange, useResource } from '../../api/resource.ts'
import { AccessBadge } from '../../components/access-badge.tsx'
import { BreakableName } from '../../components/breakable-name.tsx'
import { CodeBlock } from '../../components/code-block.tsx'
import { numberColumn, textColumn } from '../../components/columns.ts'
import { SearchField, SelectFilter } from '../../components/filters.tsx'
import { ForeignLine } from '../../components/foreign-text.tsx'
import { Page } from '../../components/page.tsx'
import { PagedTable } from '../../components/paged-table.tsx'
import { EmptyState } from '../../components/states.tsx'
import { StatusBadge } from '../../components/status-badge.tsx'
import { pinStatuses } from '../../components/statuses.ts'
import { type Column, RowLink } from '../../components/table.tsx'
import { parseSort, sortKey } from '../../components/table-sort.ts'
import { Tabs } from '../../components/tabs.tsx'
import { query, setQuery } from '../../routing/location.ts'
import { choiceParam } from '../../routing/query.ts'
import { pathTo } from '../../routing/route.ts'
import { Prompts, Resources } from '../playground/entries.tsx'
import { someNames, unlistedServers } from './unlisted-servers.ts'

const views = { tools: 'Tools', resources: 'Resources', prompts: 'Prompts' } as const
const viewNames = ['tools', 'resources', 'prompts'] as const

export function Tools() {
  const view = choiceParam(query.value, 'view', viewNames)
  const text = query.value.get('q') ?? ''
  const server = query.value.get('server') ?? ''
  const filter = { query: text, server }
  const sort = parseToolSort(query.value.get('sort'))
  const servers = useResource(queries.servers, 'servers')
  const unlisted = unlistedServers(servers.data ?? [])
  return (
    <Page title="Tools" note="Tools as agents see them, with the number of tokens that each definition takes.">
      <div class="filters">
        <SearchField key={view} label={`Search ${view}`} />
        <SelectFilter label="Server" name="server" options={servers.data?.map(({ name }) => name) ?? []} all="all" />
      </div>
      {unlisted.length > 0 && (
        <p class="quiet">
          Not listed yet: {someNames(unlisted)}. Toolway connects to a server when it is first needed, or with Refresh
          all tools on the page <a href={pathTo('servers')}>Servers</a>.
        </p>
      )}
      <Tabs
        label="What servers offer"
        names={views}
        value={view}
        onChange={(next) => setQuery({ view: next === 'tools' ? '' : next, entry: '' })}
      >
        {view === 'tools' && <AllTools filter={{ ...filter, sort }} />}
        {view === 'resources' && <Resources filter={filter} />}
        {view === 'prompts' && <Prompts filter={filter} />}
      </Tabs>
    </Page>
  )
}

interface ToolFilter {
  readonly query: string
  readonly server: string
  readonly sort: string | undefined
}

/** More rows at once would block the page for too long, with long names and descriptions. */
const limit = 40

function AllTools({ filter }: { readonly filter: ToolFilter }) {
  const tools = usePages<ToolPage>((cursor) => queries.tools({ ...filter, cursor, limit }), JSON.stringify(filter))
  useReloadOnToolChange(tools.first)
  const isFiltered = filter.query !== '' || filter.server !== ''
  return (
    <div class="card">
      <PagedTable
        label="Tools"
        list={tools}
        rows={tools.pages.flatMap((page) => page.tools)}
        itemName="tool"
        keyOf={({ name }) => name}
        columns={toolColumns}
        sort={{ remote: true }}
        empty={() => (isFiltered ? <NoMatchingTools /> : <NoTools />)}
      />
    </div>
  )
}

function NoMatchingTools() {
  return (
    <EmptyState title="No matching tools">
      <p class="quiet">The search matches names and descriptions. Try fewer words, or search all servers.</p>
    </EmptyState>
  )
}

function NoTools() {
  return (
    <EmptyState title="No tools">
      <p>
        Either no server is connected yet, or your agent may not use any tools. Check the{' '}
        <a href={pathTo('servers')}>servers</a> and the <a href={pathTo('policy')}>policy</a>.
      </p>
      <CodeBlock text="toolway tools list" label="Command to list the tools" />
    </EmptyState>
  )
}

/** The order for the API; none if the address has an unknown one. */
const parseToolSort = (text: string | null): string | undefined => {
  const order = parseSort(text)
  return toolColumns.some(({ title }) => sortKey(title) === order?.key) ? (text ?? undefined) : undefined
}

/** More than fits into the one line that the list shows of a description. */
const maxShown = 200

const toolColumns: readonly Column<ToolView>[] = [
  {
    title: 'Tool',
    sortBy: ({ name }) => name,
    truncate: true,
    cell: ({ name, description }) => (
      <>
        <RowLink href={pathTo('tools', name)}>
          <BreakableName name={name} />
        </RowLink>
        <ForeignLine text={description.slice(0, maxShown)} />
      </>
    ),
  },
  textColumn('Server', ({ server }) => server, { minScreen: 'middle' }),
  { title: 'Access', sortBy: ({ access }) => access, cell: ({ access }) => <AccessBadge access={access} /> },
  {
    title: 'Definition',
    sortBy: ({ pin }) => pin,
    minScreen: 'middle',
    cell: ({ pin, flags }) => (
      <>
        <StatusBadge status={pinStatuses[pin]} />
        {flags.length > 0 && (
          <span class="sub tone-warn" title={flags.join('\n')}>
            {flags.length === 1 ? flags[0] : `${flags.length} flags`}
          </span>
        )}
      </>
    ),
  },
  numberColumn('Tokens', ({ tokens }) => tokens),
]
