import { useSignal } from '@preact/signals'
import { useRef } from 'preact/hooks'
import type { AppliedEdit, ConfigEdit, PolicyPart, PolicySettings } from '../../../../src/admin/contract.ts'
import { queries } from '../../api/endpoints.ts'
import { liveReload } from '../../api/live.ts'
import { useResource } from '../../api/resource.ts'
import { Button } from '../../components/button.tsx'
import { Card } from '../../components/page.tsx'
import { SelectField } from '../../components/select-field.tsx'
import { Loaded, Loading, Note } from '../../components/states.tsx'
import { ReviewChange, ReviewPanel } from '../../config-edit/review-change.tsx'
import { query, setQuery } from '../../routing/location.ts'
import { mayDiscard } from '../../routing/unsaved.ts'
import { PartEditor } from './part-editor.tsx'
import { PolicyEffect } from './policy-effect.tsx'
import { PolicyReplayPanel } from './policy-replay.tsx'

const newAgent: PolicyPart = {
  kind: 'agent',
  title: 'New agent',
  path: ['agents', ''],
  value: null,
  yaml: '',
  hash: '',
}

/** Edits agents, rules, limits and guards: shows the effect of a change, replays it, then saves it. */
export function PolicyEditor() {
  const settings = useResource(queries.policy, `policy ${liveReload.value?.at}`)
  const reviewed = useSignal<ConfigEdit | undefined>(undefined)
  const saved = useSignal<AppliedEdit['edit'] | undefined>(undefined)
  const undoing = useSignal(false)
  /** The settings before the last edit. They are not shown again: the form would be filled with old values. */
  const outdated = useSignal<PolicySettings | undefined>(undefined)
  const loadCurrent = () => {
    reviewed.value = undefined
    outdated.value = settings.data
    settings.reload()
  }
  const done = ({ edit }: AppliedEdit) => {
    saved.value = edit.undoes === null ? edit : undefined
    loadCurrent()
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
                <Button kind="tiny" onClick={() => (undoing.value = true)}>
                  Undo
                </Button>
              </p>
            </Note>
          )}
          <div hidden={reviewed.value !== undefined}>
            {data === outdated.value && !settings.error ? (
              <Loading what="the policy" />
            ) : (
              <Parts settings={data} onReview={(edit) => (reviewed.value = edit)} onLoadCurrent={loadCurrent} />
            )}
          </div>
          {reviewed.value && (
            <>
              <PolicyEffect edit={reviewed.value} />
              <PolicyReplayPanel edit={reviewed.value} />
              <Card title="File changes">
                <div class="stack">
                  <ReviewPanel
                    edit={reviewed.value}
                    onBack={() => (reviewed.value = undefined)}
                    onLoadCurrent={loadCurrent}
                    onSaved={done}
                  />
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
  onLoadCurrent(): void
}

/** Selects a part of the policy and edits it. */
function Parts({ settings: { parts, schemas, file }, onReview, onLoadCurrent }: PartsProps) {
  const all = [...parts, newAgent]
  /** The part in the form. It stays if it is removed from the file meanwhile, because something may have been typed. */
  const opened = useRef<PolicyPart>(undefined)
  const idOf = ({ path }: PolicyPart) => path.join('.')
  const wanted = query.value.get('part') ?? (opened.current && idOf(opened.current))
  const isWanted = (part: PolicyPart) => idOf(part) === wanted
  const part = all.find(isWanted) ?? [opened.current].find((one) => one && isWanted(one)) ?? all[0] ?? newAgent
  opened.current = part
  const choices = all.includes(part) ? all : [...all, part]
  const schema = schemas[part.kind] ?? {}
  return (
    <Card
      title={part.title}
      side={
        <SelectField
          label="Edit"
          value={idOf(part)}
          options={choices.map((one) => [idOf(one), one.title])}
          onChange={(next) => mayDiscard() && setQuery({ part: next })}
        />
      }
    >
      <PartEditor key={idOf(part)} {...{ part, schema, file, onReview, onLoadCurrent }} />
    </Card>
  )
}
