import type { ConfigView } from '../../../../src/serve/admin/contract.ts'
import { actions, queries } from '../../api/endpoints.ts'
import { liveReload } from '../../api/live.ts'
import { useResource } from '../../api/resource.ts'
import { isAdmin } from '../../api/session.ts'
import { Action } from '../../parts/action.tsx'
import { Code } from '../../parts/code.tsx'
import { Copy } from '../../parts/copy.tsx'
import { attempt } from '../../parts/notices.tsx'
import { Card, Page } from '../../parts/page.tsx'
import { AdminsOnly, Loaded, Note } from '../../parts/states.tsx'
import { ConfigTree } from './config-tree.tsx'
import { History } from './history.tsx'

export function Configuration() {
  if (isAdmin.value) return <Whole />
  return (
    <Page title="Configuration">
      <AdminsOnly what="the configuration" />
    </Page>
  )
}

function Whole() {
  const config = useResource(queries.config, `config ${liveReload.value?.at}`)
  const reload = async () => {
    await attempt(actions.reload, (event) =>
      event.ok
        ? `Reloaded: ${event.changes.length === 0 ? 'no effective changes.' : event.changes.join('; ')}`
        : `Reload failed; the configuration did not change: ${event.error}`,
    )
    config.reload()
  }
  return (
    <Page
      title="Configuration"
      note="Files are reloaded when they change. An invalid configuration is not applied."
      actions={<Action name="Reload now" icon="refresh" run={reload} />}
    >
      <Loaded of={config} what="the configuration">
        {(data) => <Parts config={data} />}
      </Loaded>
    </Page>
  )
}

function Parts({ config }: { readonly config: ConfigView }) {
  return (
    <>
      {config.reload.lastError !== null && (
        <Note tone="bad">
          <p>
            <strong>The last reload failed. The previous configuration is still active.</strong>
          </p>
          <Code text={config.reload.lastError} label="Reload error" />
        </Note>
      )}
      {config.warnings.length > 0 && (
        <Note tone="warn">
          <p>
            <strong>Warnings</strong>
          </p>
          {config.warnings.map((warning) => (
            <p key={warning}>{warning}</p>
          ))}
        </Note>
      )}
      <div class="grid-2">
        <Card title="Files">
          {config.files.length === 0 ? (
            <NoFiles />
          ) : (
            <ol class="stack tight">
              {config.files.map(({ path, dialect }) => (
                <li key={path} class="row">
                  <code>{path}</code> <span class="chip">{dialect}</span> <Copy text={path} label="Copy the path" />
                </li>
              ))}
              {config.files.length > 1 && (
                <li class="quiet small">Merged in this order; later files override earlier ones.</li>
              )}
            </ol>
          )}
        </Card>
        <History reload={config.reload} history={config.history} />
      </div>
      <ConfigTree config={config.config} />
    </>
  )
}

function NoFiles() {
  return (
    <div class="stack tight">
      <p>
        No configuration file found; the defaults apply. Searched: <code>--config</code>, <code>TOOLWAY_CONFIG</code>,{' '}
        <code>./toolway.yaml</code>, <code>./.mcp.json</code>, and the configuration folder of the user.
      </p>
      <Code text="toolway init" label="Command to create a configuration" />
    </div>
  )
}
