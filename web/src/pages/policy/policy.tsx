import { isAdmin } from '../../api/session.ts'
import { lazy } from '../../components/lazy.tsx'
import { Page } from '../../components/page.tsx'
import { Tabs } from '../../components/tabs.tsx'
import { query, setQuery } from '../../routing/location.ts'
import { choiceParam } from '../../routing/query.ts'
import { mayDiscard } from '../../routing/unsaved.ts'
import { Agents } from './agents.tsx'
import { ExplainView } from './explain.tsx'
import { PermissionMatrix } from './permission-matrix.tsx'

const views = { agents: 'Agents', matrix: 'Permissions', edit: 'Edit', why: 'Why' } as const
const viewNames = ['agents', 'matrix', 'edit', 'why'] as const

const PolicyEditor = lazy('the editor', async () => (await import('./policy-editor.tsx')).PolicyEditor)

export function Policy() {
  // The other views show all agents.
  if (!isAdmin.value) {
    return (
      <Page title="Policy" note="Which tools you may use, and which rule decides.">
        <ExplainView />
      </Page>
    )
  }
  const view = choiceParam(query.value, 'view', viewNames)
  return (
    <Page title="Policy" note="Which agents may use which tools, and which rule decides.">
      <Tabs
        label="Policy views"
        names={views}
        value={view}
        onChange={(next) => mayDiscard() && setQuery({ view: next === 'agents' ? '' : next })}
      >
        {view === 'why' && <ExplainView />}
        {view === 'agents' && <Agents />}
        {view === 'matrix' && <PermissionMatrix />}
        {view === 'edit' && <PolicyEditor />}
      </Tabs>
    </Page>
  )
}
