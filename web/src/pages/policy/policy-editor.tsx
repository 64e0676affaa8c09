import { useSignal } from '@preact/signals'
import type { AppliedEdit, ConfigEdit, PolicyPart, PolicySettings } from '../../../../src/serve/admin/contract.ts'
import { queries } from '../../api/endpoints.ts'
import { liveReload } from '../../api/live.ts'
import { useResource } from '../../api/resource.ts'
import { Card } from '../../components/page.tsx'
import { Loaded, Loading, Note } from '../../components/states.tsx'
import { ReviewChange, ReviewPanel } from '../../config-edit/review-change.tsx'
import { query, setQuery } from '../../routing/location.ts'
import { PartEditor } from './part-editor.tsx'
import { PolicyEffect } from './policy-effect.tsx'
import { PolicyReplayPanel } from './policy-replay.tsx'

const newAgent: PolicyPart = { kind: 'agent', title: 'New agent', path: ['agents', ''], value: null, yaml: '' }

/** Edits agents, rules, limits and guards: shows the effect of a change, replays it, then saves it. */
export function PolicyEditor() {
  const settings = useResource(queries.policy, `policy ${liveReload.value?.at}`)
  const reviewed = useSignal<ConfigEdit | undefined>(undefined)
  const saved = useSignal<AppliedEdit['edit'] | undefined>(undefined)
  const undoing = useSignal(false)
  /** The settings before the last edit. They are not shown again: what is typed would be lost when the new ones arrive. */
  const outdated = useSignal<PolicySettings | undefined>(undefined)
  const done = ({ edit }: AppliedEdit) => {
    reviewed.value = undefined
    saved.value = edit.undoes === null ? edit : undefined
    outdated.value = settings.data
    settings.reload()
  }
  return (
    <Loaded resource={settings} what="the policy">
      {(data) => (
        <div class="stack">
          {!data.editable.ok && (
            <Note tone="warn">
              <p>{data.editable.reason} You can see the effect of a change here and copy the new text.</p>
            </Note>
          )}
          {saved.value && !reviewed.value && (
            <Note>
              <p>
                Saved in <code>{saved.value.file}</code>: {saved.value.paths.join(', ')}.
              </p>
              <p>
                <button type="button" class="button tiny" onClick={() => (undoing.value = true)}>
                  Undo
                </button>
              </p>
            </Note>
          )}
          <div hidden={reviewed.value !== undefined}>
            {data === outdated.value && !settings.error ? (
              <Loading what="the policy" />
            ) : (
              <Parts key={JSON.stringify(data.parts)} settings={data} onReview={(edit) => (reviewed.value = edit)} />
            )}
          </div>
          {reviewed.value && (
            <>
              <PolicyEffect edit={reviewed.value} />
              <PolicyReplayPanel edit={reviewed.value} />
              <Card title="File changes">
                <div class="stack">
                  <ReviewPanel edit={reviewed.value} onBack={() => (reviewed.value = undefined)} onSaved={done} />
                </div>
              </Card>
            </>
          )}
          {undoing.value && saved.value && (
            <ReviewChange
              title="Undo an edit"
              edit={{ undo: saved.value.id }}
              onClose={() => (undoing.value = false)}
              onSaved={done}
            />
          )}
        </div>
      )}
    </Loaded>
  )
}

interface PartsProps {
  readonly settings: PolicySettings
  onReview(edit: ConfigEdit): void
}

/** Selects a part of the policy and edits it. */
function Parts({ settings: { parts, schemas, file }, onReview }: PartsProps) {
  const choices = [...parts, newAgent]
  const wanted = query.value.get('part') ?? ''
  const part = choices.find(({ path }) => path.join('.') === wanted) ?? choices[0] ?? newAgent
  const schema = schemas[part.kind] ?? {}
  return (
    <Card
      title={part.title}
      side={
        <label class="filter">
          <span>Edit</span>
          <select
            class="input"
            value={part.path.join('.')}
            onChange={({ currentTarget }) => setQuery({ part: currentTarget.value })}
          >
            {choices.map(({ path, title }) => (
              <option key={path.join('.')} value={path.join('.')}>
                {title}
              </option>
            ))}
          </select>
        </label>
      }
    >
      <PartEditor key={part.path.join('.')} part={part} schema={schema} file={file} onReview={onReview} />
    </Card>
  )
}
