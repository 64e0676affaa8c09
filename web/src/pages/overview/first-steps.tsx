import type { Overview } from '../../../../src/serve/admin/contract.ts'
import { Note } from '../../components/states.tsx'
import { pathTo } from '../../routing/route.ts'
import { Connect } from './connect.tsx'

/** The introduction, which is shown until the first call. */
export function FirstSteps({ overview }: { readonly overview: Overview }) {
  const servers = Object.values(overview.servers).reduce((sum, number) => sum + number, 0)
  return (
    <>
      <Note>
        <p>
          <strong>Toolway is running. No calls have been made yet.</strong>
        </p>
        {servers === 0 && (
          <p>
            1. <a href={pathTo('servers')}>Add a server</a>, or start with Toolway's native tools.
          </p>
        )}
        <p>{servers === 0 ? '2. ' : ''}Connect a client to the endpoint below and ask it to use a tool.</p>
        <p>
          {servers === 0 ? '3. ' : ''}Or <a href={pathTo('tools')}>try a tool</a> right here.
        </p>
      </Note>
      <Connect endpoint={overview.endpoint} />
    </>
  )
}
