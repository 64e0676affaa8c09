import type { ToolView } from '../../../../src/serve/admin/contract.ts'
import { count } from '../../format/number.ts'
import { Access } from '../../parts/access.tsx'
import { pinLooks } from '../../parts/looks.ts'
import { Mark } from '../../parts/mark.tsx'
import { Name } from '../../parts/name.tsx'
import { type Column, RowLink } from '../../parts/table.tsx'
import { pathTo } from '../../routing/route.ts'

export const toolColumns: readonly Column<ToolView>[] = [
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
  { title: 'Tokens', end: true, cell: ({ tokens }) => count(tokens) },
]
