import type { PromptView, ResourceView } from '../../../../src/admin/contract.ts'
import { queries } from '../../api/endpoints.ts'
import { usePages } from '../../api/paged.ts'
import { textColumn } from '../../components/columns.ts'
import { ForeignLine } from '../../components/foreign-text.tsx'
import { PagedTable } from '../../components/paged-table.tsx'
import { EmptyState } from '../../components/states.tsx'
import { type Column, RowLink } from '../../components/table.tsx'
import { query } from '../../routing/location.ts'
import { updateQuery } from '../../routing/query.ts'
import { pathTo } from '../../routing/route.ts'
import { PromptForm, ResourceForm } from './entry-form.tsx'

interface ListProps {
  readonly filter: { readonly query: string; readonly server: string }
}

const linkTo = (entry: string): string => pathTo('tools') + updateQuery(query.value.toString(), { entry })

export function Resources({ filter }: ListProps) {
  const list = usePages((cursor) => queries.resources({ ...filter, cursor }), JSON.stringify(filter))
  const rows = list.pages.flatMap((page) => page.resources)
  const open = rows.find(({ uri }) => uri === query.value.get('entry'))
  return (
    <>
      {open && <ResourceForm key={open.uri} resource={open} />}
      <div class="card">
        <PagedTable
          label="Resources"
          list={list}
          rows={rows}
          itemName="resource"
          keyOf={({ uri }) => uri}
          columns={resourceColumns}
          current={({ uri }) => uri === open?.uri}
          empty={() => <NoneMatch title="No resources" />}
        />
      </div>
    </>
  )
}

export function Prompts({ filter }: ListProps) {
  const list = usePages((cursor) => queries.prompts({ ...filter, cursor }), JSON.stringify(filter))
  const rows = list.pages.flatMap((page) => page.prompts)
  const open = rows.find(({ name }) => name === query.value.get('entry'))
  return (
    <>
      {open && <PromptForm key={open.name} prompt={open} />}
      <div class="card">
        <PagedTable
          label="Prompts"
          list={list}
          rows={rows}
          itemName="prompt"
          keyOf={({ name }) => name}
          columns={promptColumns}
          current={({ name }) => name === open?.name}
          empty={() => <NoneMatch title="No prompts" />}
        />
      </div>
    </>
  )
}

const NoneMatch = ({ title }: { readonly title: string }) => (
  <EmptyState title={title}>
    <p class="quiet">No connected server offers any that match.</p>
  </EmptyState>
)

const resourceColumns: readonly Column<ResourceView>[] = [
  {
    title: 'Resource',
    sortBy: ({ uri, name }) => name || uri,
    truncate: true,
    cell: ({ uri, name, template }) => (
      <>
        <RowLink href={linkTo(uri)}>{name || uri}</RowLink>
        <span class="sub">
          {template && 'template, '}
          {uri}
        </span>
      </>
    ),
  },
  textColumn('Server', ({ server }) => server, { minScreen: 'middle' }),
  { title: 'Type', minScreen: 'wide', sortBy: ({ mimeType }) => mimeType, cell: ({ mimeType }) => mimeType ?? '' },
]

const argumentNames = (prompt: PromptView): string => prompt.arguments.map(({ name }) => name).join(', ')

const promptColumns: readonly Column<PromptView>[] = [
  {
    title: 'Prompt',
    sortBy: ({ name }) => name,
    truncate: true,
    cell: ({ name, description }) => (
      <>
        <RowLink href={linkTo(name)}>{name}</RowLink>
        <ForeignLine text={description} />
      </>
    ),
  },
  textColumn('Server', ({ server }) => server, { minScreen: 'middle' }),
  textColumn('Arguments', argumentNames, { minScreen: 'middle' }),
]
