import type { ConfigView } from '../../../../src/admin/contract.ts'
import { actions, queries } from '../../api/endpoints.ts'
import { liveReload } from '../../api/live.ts'
import { useResource } from '../../api/resource.ts'
import { ActionButton } from '../../components/action-button.tsx'
import { CodeBlock } from '../../components/code-block.tsx'
import { CopyButton } from '../../components/copy-button.tsx'
import { lazy } from '../../components/lazy.tsx'
import { withNotice } from '../../components/notices.tsx'
import { Card, Page } from '../../components/page.tsx'
import { Loaded, Note } from '../../components/states.tsx'
import { ConfigTree } from './config-tree.tsx'
import { ReloadHistory } from './reload-history.tsx'

const EditHistory = lazy('the edits', async () => (await import('../../config-edit/edit-history.tsx')).EditHistory)

export function Configuration() {
  const config = useResource(queries.config, `config ${liveReload.value?.at}`)
  const reload = async () => {
    await withNotice(actions.reload, (event) =>
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
      actions={<ActionButton name="Reload now" icon="refresh" run={reload} />}
    >
      <Loaded resource={config} what="the configuration">
        {(data) => <ConfigurationCards config={data} onSaved={config.reload} />}
      </Loaded>
    </Page>
  )
}

function ConfigurationCards({ config, onSaved }: { readonly config: ConfigView; onSaved(): void }) {
  return (
    <>
      {config.reload.lastError !== null && (
        <Note tone="bad">
          <p>
            <strong>The last reload failed. The previous configuration is still active.</strong>
          </p>
          <CodeBlock text={config.reload.lastError} label="Reload error" />
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
                  <code>{path}</code> <span class="chip">{dialect}</span>{' '}
                  <CopyButton text={path} label="Copy the path" />
                </li>
              ))}
              {config.files.length > 1 && (
                <li class="quiet small">Merged in this order; later files override earlier ones.</li>
              )}
            </ol>
          )}
        </Card>
        <ReloadHistory reload={config.reload} history={config.history} />
      </div>
      <EditHistory version={String(config.reload.lastAt)} onSaved={onSaved} />
      <ConfigTree config={config.config} />
    </>
  )
}

function NoFiles() {
  return (
    <div class="stack tight">
      <p>
        No configuration file found; the defaults apply. Searched: <code>--config</code>, <code>TOOLWAY_CONFIG</code>,{' '}
        <code>./toolway.yaml</code>, <code>./.mcp.json</code>, and the user's configuration folder.
      </p>
      <CodeBlock text="toolway init" label="Command to create a configuration" />
    </div>
  )
}
