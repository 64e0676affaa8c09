import { isAdmin } from '../../api/session.ts'
import { Page } from '../../parts/page.tsx'
import { AdminsOnly } from '../../parts/states.tsx'
import { Tabs } from '../../parts/tabs.tsx'
import { query, setQuery } from '../../routing/location.ts'
import { choiceParam } from '../../routing/query.ts'
import { Agents } from './agents.tsx'
import { MatrixView } from './matrix-view.tsx'
import { Why } from './why.tsx'

const views = { agents: 'Agents', matrix: 'Permissions', why: 'Why' } as const
const words = ['agents', 'matrix', 'why'] as const

export function Policy() {
  const view = choiceParam(query.value, 'view', words)
  return (
    <Page title="Policy" note="Which agents may use which tools, and which rule decides.">
      <Tabs
        label="Policy views"
        names={views}
        value={view}
        onChange={(next) => setQuery({ view: next === 'agents' ? '' : next })}
      >
        {view === 'why' && <Why />}
        {view !== 'why' && !isAdmin.value && <AdminsOnly what="all agents" />}
        {view === 'agents' && isAdmin.value && <Agents />}
        {view === 'matrix' && isAdmin.value && <MatrixView />}
      </Tabs>
    </Page>
  )
}
