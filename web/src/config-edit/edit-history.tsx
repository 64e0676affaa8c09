import { useSignal } from '@preact/signals'
import type { ConfigEditRecord } from '../../../src/admin/contract.ts'
import { queries } from '../api/endpoints.ts'
import { useResource } from '../api/resource.ts'
import { DiffView } from '../components/diff-view.tsx'
import { Card } from '../components/page.tsx'
import { Loaded } from '../components/states.tsx'
import { RelativeTime } from '../components/times.tsx'
import { ReviewChange } from './review-change.tsx'

/** What an edit has changed. Without paths, it has changed only comments or the layout. */
const nameOf = (paths: readonly string[]): string => paths.join(', ') || 'comments or layout'

/** The edits that a later edit has undone, unless that one was undone again. */
function undone(edits: readonly ConfigEditRecord[]): ReadonlySet<string> {
  const ids = new Set<string>()
  for (const { id, undoes } of edits) if (undoes !== null && !ids.has(id)) ids.add(undoes)
  return ids
}

/** The edits of the configuration file that can be undone. */
export function EditHistory({ version, onSaved }: { readonly version: string; onSaved(): void }) {
  const edits = useResource(queries.configEdits, `edits ${version}`)
  const file = useResource(queries.configFile, `file ${version}`)
  const undo = useSignal<string | undefined>(undefined)
  const saved = () => {
    edits.reload()
    file.reload()
    onSaved()
  }
  return (
    <Card title="Edits">
      {file.data && !file.data.editable.ok && <p class="quiet">{file.data.editable.reason}</p>}
      <Loaded resource={edits} what="the edits">
        {(all) =>
          all.length === 0 ? (
            <p class="quiet">None yet. Changes that are made here can be undone.</p>
          ) : (
            <ol class="stack">
              {all.map(({ id, at, by, paths, diff, undoes }) => (
                <li key={id} class="stack tight">
                  <span class="row spread">
                    <span>
                      {undoes === null ? '' : 'Undid '}
                      <code>{nameOf(paths)}</code>
                    </span>
                    {undone(all).has(id) ? (
                      <span class="quiet">undone</span>
                    ) : (
                      <button
                        type="button"
                        class="button tiny"
                        aria-label={`Undo the edit of ${nameOf(paths)}`}
                        onClick={() => (undo.value = id)}
                      >
                        Undo
                      </button>
                    )}
                  </span>
                  <span class="quiet">
                    {by}, <RelativeTime at={at} />
                  </span>
                  <details>
                    <summary>Changes</summary>
                    <DiffView lines={diff} label={`Changes to ${nameOf(paths)}`} />
                  </details>
                </li>
              ))}
            </ol>
          )
        }
      </Loaded>
      {undo.value !== undefined && (
        <ReviewChange
          title="Undo an edit"
          edit={{ undo: undo.value }}
          onClose={() => (undo.value = undefined)}
          onSaved={saved}
        />
      )}
    </Card>
  )
}
