import { isAdmin } from '../../api/session.ts'
import { Page } from '../../components/page.tsx'
import { AdminsOnly } from '../../components/states.tsx'
import { Tabs } from '../../components/tabs.tsx'
import { query, setQuery } from '../../routing/location.ts'
import { choiceParam } from '../../routing/query.ts'
import { Agents } from './agents.tsx'
import { ExplainView } from './explain.tsx'
import { PermissionMatrix } from './permission-matrix.tsx'

const views = { agents: 'Agents', matrix: 'Permissions', why: 'Why' } as const
const viewNames = ['agents', 'matrix', 'why'] as const

export function Policy() {
  const view = choiceParam(query.value, 'view', viewNames)
  return (
    <Page title="Policy" note="Which agents may use which tools, and which rule decides.">
      <Tabs
        label="Policy views"
        names={views}
        value={view}
        onChange={(next) => setQuery({ view: next === 'agents' ? '' : next })}
      >
        {view === 'why' && <ExplainView />}
        {view !== 'why' && !isAdmin.value && <AdminsOnly what="all agents" />}
        {view === 'agents' && isAdmin.value && <Agents />}
        {view === 'matrix' && isAdmin.value && <PermissionMatrix />}
      </Tabs>
    </Page>
  )
}
