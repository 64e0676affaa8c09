import { type Signal, useSignal } from '@preact/signals'
import type { AppliedEdit, ConfigEdit, EditProposal } from '../../../src/admin/contract.ts'
import { actions, queries } from '../api/endpoints.ts'
import { ApiError } from '../api/request.ts'
import { useResource } from '../api/resource.ts'
import { Dialog } from '../components/dialog.tsx'
import { DiffView } from '../components/diff-view.tsx'
import { withNotice } from '../components/notices.tsx'
import { Loaded, Note } from '../components/states.tsx'

interface ReviewProps {
  readonly edit: ConfigEdit
  /** Goes back to the form, if there is one. */
  onBack?: (() => void) | undefined
  /** Fills the form with the current values, after they have changed. What was typed is lost. */
  onLoadCurrent?: (() => void) | undefined
  onSaved(applied: AppliedEdit): void
}

/** What an edit would change, with its problems. Saves it if there are none. */
export function ReviewPanel({ edit, onBack, onLoadCurrent, onSaved }: ReviewProps) {
  /** What a person has chosen here in addition to the edit. */
  const copies = useSignal<readonly string[]>([])
  const allow = useSignal<readonly string[]>([])
  const wanted = {
    ...edit,
    ...(copies.value.length > 0 && { copies: copies.value }),
    ...(allow.value.length > 0 && { allow: allow.value }),
  }
  const proposal = useResource(queries.preview(wanted), JSON.stringify(wanted))
  const busy = useSignal(false)
  /** The references that a person has confirmed, as JSON. */
  const confirmed = useSignal('[]')
  const save = async ({ hash, references }: EditProposal) => {
    if (busy.value) return
    busy.value = true
    await withNotice(async () => {
      try {
        const applied = await actions.applyEdit(
          { ...wanted, references: references.map(({ reference }) => reference) },
          hash,
        )
        onSaved(applied)
        return applied
      } catch (thrown) {
        // The file has changed: show what the edit would change now.
        if (thrown instanceof ApiError && thrown.code === 'CONFLICT') proposal.reload()
        throw thrown
      }
    }, savedMessage)
    busy.value = false
  }
  // A proposal is outdated as soon as it cannot be loaded again.
  const data = proposal.error ? undefined : proposal.data
  const references = JSON.stringify(data?.references ?? [])
  const isConfirmed = references === '[]' || references === confirmed.value
  const isCurrent = !proposal.loading && !busy.value
  const canSave = data?.editable.ok && data.problems.length === 0 && data.diff.length > 0 && isConfirmed && isCurrent
  return (
    <>
      <Loaded resource={{ ...proposal, data }} what="the change">
        {(loaded) => (
          <>
            {loaded.present.map(({ name, as }) => (
              <Note key={name} tone="warn">
                <p>
                  <strong>{name}</strong> is not added: the configuration has the same server as <strong>{as}</strong>.
                </p>
                <p>
                  <button type="button" class="button tiny" onClick={() => (copies.value = [...copies.value, name])}>
                    Add {name}, too
                  </button>
                </p>
              </Note>
            ))}
            <Proposal proposal={loaded} />
            {loaded.problems.length === 0 && <AgentAccess proposal={loaded} allow={allow} />}
          </>
        )}
      </Loaded>
      {data && references !== '[]' && (
        <label class="check">
          <input
            type="checkbox"
            checked={isConfirmed}
            onChange={({ currentTarget }) => (confirmed.value = currentTarget.checked ? references : '[]')}
          />
          <span>{questionOf(data)}</span>
        </label>
      )}
      <div class="actions">
        {onLoadCurrent && proposal.error?.code === 'CONFLICT' && (
          <button type="button" class="button danger" onClick={onLoadCurrent}>
            Discard my changes and load the current values
          </button>
        )}
        {onBack && (
          <button type="button" class="button" onClick={onBack}>
            Back
          </button>
        )}
        {data && (
          <button type="button" class="button primary" disabled={!canSave} onClick={() => void save(data)}>
            {busy.value ? 'Saving…' : 'Save'}
          </button>
        )}
      </div>
    </>
  )
}

/** What a person confirms before Toolway reads what a change refers to. */
export const questionOf = ({ references }: Pick<EditProposal, 'references'>): string => {
  const values = references.map(({ key, target, reference }) => `${reference} for ${key}${target && ` (${target})`}`)
  return `Read these values and pass them on: ${values.join(', ')}`
}

const savedMessage = ({ reload }: AppliedEdit): string => {
  if (!reload.ok) return `Saved, but not applied: ${reload.error}`
  return `Saved: ${reload.changes.length === 0 ? 'no effective changes.' : reload.changes.join('; ')}`
}

function Proposal({ proposal }: { readonly proposal: EditProposal }) {
  const { file, editable, diff, problems, warnings, notes } = proposal
  return (
    <>
      {!editable.ok && (
        <Note tone="warn">
          <p>{editable.reason}</p>
          <p>Make this change in the file yourself.</p>
        </Note>
      )}
      {problems.length > 0 && (
        <Note tone="bad">
          <p>
            <strong>This cannot be saved:</strong>
          </p>
          {problems.map(({ key, message }) => (
            <p key={`${key} ${message}`}>
              {key !== '' && <code>{key}</code>} {message}
            </p>
          ))}
        </Note>
      )}
      {[...warnings, ...notes].map((text) => (
        <Note key={text} tone="warn">
          {text}
        </Note>
      ))}
      <p>
        <code>{file}</code>
      </p>
      <DiffView lines={diff} label={`Changes to ${file}`} />
    </>
  )
}

interface AgentAccessProps {
  readonly proposal: EditProposal
  readonly allow: Signal<readonly string[]>
}

/** Which agents may use the servers that a change adds. If there are none, some can be chosen. */
function AgentAccess({ proposal: { added, allowable }, allow }: AgentAccessProps) {
  const open = added.filter(({ agents }) => agents?.length === 0)
  const toggle = (agent: string) => {
    const others = allow.value.filter((one) => one !== agent)
    allow.value = others.length < allow.value.length ? others : [...others, agent]
  }
  return (
    <>
      {added.map(({ name, agents }) => (
        <p key={name} class={agents?.length === 0 ? 'tone-warn' : 'quiet'}>
          {agents === null
            ? `Everybody may use ${name}: there are no rules for agents.`
            : `${agents.length === 0 ? 'No agent' : agents.join(', ')} may use ${name}.`}
        </p>
      ))}
      {(open.length > 0 || allow.value.length > 0) && allowable.length > 0 && (
        <fieldset class="row">
          <legend>Allow it for</legend>
          {allowable.map((agent) => (
            <label key={agent} class="check">
              <input type="checkbox" checked={allow.value.includes(agent)} onChange={() => toggle(agent)} />
              <span>{agent}</span>
            </label>
          ))}
        </fieldset>
      )}
    </>
  )
}

interface ReviewChangeProps extends ReviewProps {
  readonly title: string
  onClose(): void
}

/** A dialog that shows a change before it is saved. */
export function ReviewChange({ title, onClose, onSaved, ...review }: ReviewChangeProps) {
  return (
    <Dialog title={title} onClose={onClose} wide>
      <ReviewPanel
        {...review}
        onSaved={(applied) => {
          onClose()
          onSaved(applied)
        }}
      />
    </Dialog>
  )
}
