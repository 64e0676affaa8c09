import { useSignal } from '@preact/signals'
import { useId } from 'preact/hooks'
import type { AnswerApproval, ApprovalView } from '../../../../src/serve/admin/contract.ts'
import { actions } from '../../api/endpoints.ts'
import { removeLiveApproval } from '../../api/live.ts'
import { ActionButton } from '../../components/action-button.tsx'
import { BreakableName } from '../../components/breakable-name.tsx'
import { CodeBlock } from '../../components/code-block.tsx'
import { Dialog } from '../../components/dialog.tsx'
import { withNotice } from '../../components/notices.tsx'
import { RelativeTime } from '../../components/times.tsx'
import { formatTimeLeft } from '../../format/duration.ts'
import { pathTo } from '../../routing/route.ts'
import { now } from '../../shell/now.ts'

type ApprovalDecision = AnswerApproval['decision']

/** The calls that wait for a person, each with the buttons to answer it. */
export function ApprovalList({ approvals }: { readonly approvals: readonly ApprovalView[] }) {
  return (
    <ul class="stack approvals" aria-label="Calls waiting for approval">
      {approvals.map((approval) => (
        <ApprovalItem key={approval.id} approval={approval} />
      ))}
    </ul>
  )
}

/** The first approvals, and a link to all if there are more. */
export function FirstApprovals({ approvals }: { readonly approvals: readonly ApprovalView[] }) {
  return (
    <>
      <ApprovalList approvals={approvals.slice(0, 3)} />
      {approvals.length > 3 && <a href={pathTo('approvals')}>All {approvals.length} approvals</a>}
    </>
  )
}

const done: Readonly<Record<ApprovalDecision, string>> = {
  once: 'Allowed',
  session: 'Allowed for the session:',
  deny: 'Denied',
}

function ApprovalItem({ approval }: { readonly approval: ApprovalView }) {
  const { id, agent, principal, session, server, tool, rule, askedAt, until, mayAnswer } = approval
  const denying = useSignal(false)
  const name = `${server}.${tool}`
  const answer = (decision: ApprovalDecision, reason?: string) =>
    withNotice(
      async () => {
        const answered = await actions.answerApproval(id, { decision, reason })
        removeLiveApproval(id)
        return answered
      },
      () => `${done[decision]} ${name}.`,
    )
  return (
    <li class="card approval" aria-label={`${agent} wants to call ${name}`}>
      <div class="card-head">
        <h3>
          <strong>{agent}</strong> wants to call{' '}
          <code>
            <BreakableName name={name} />
          </code>
        </h3>
        <Countdown from={askedAt} until={until} />
      </div>
      <div class="card-body stack">
        <CodeBlock text={approval.arguments} label={`Arguments for ${name}`} wrap />
        <dl class="facts">
          <dt>Caller</dt>
          <dd>
            {principal} <span class="quiet">session {session}</span>
          </dd>
          <dt>Rule</dt>
          <dd>
            <code>{rule}</code>
          </dd>
          <dt>Asked</dt>
          <dd>
            <RelativeTime at={askedAt} /> <a href={pathTo('calls', approval.call)}>View call</a>
          </dd>
        </dl>
        {mayAnswer ? (
          <div class="row">
            <ActionButton name="Allow once" icon="check" kind="primary" everyone run={() => answer('once')} />
            <ActionButton name="Allow for this session" everyone run={() => answer('session')} />
            <button type="button" class="button danger" onClick={() => (denying.value = true)}>
              Deny…
            </button>
          </div>
        ) : (
          <p class="quiet">You may not answer this call (approvals.by).</p>
        )}
        {denying.value && (
          <DenyDialog
            name={name}
            onClose={() => (denying.value = false)}
            deny={(reason) => void answer('deny', reason)}
          />
        )}
      </div>
    </li>
  )
}

/** The time that is left. It is not announced, because it changes every second. */
function Countdown({ from, until }: { readonly from: number; readonly until: number }) {
  return (
    <span class="quiet nowrap" role="timer" aria-live="off">
      {formatTimeLeft({ from, until }, now.value)}
    </span>
  )
}

interface DenyDialogProps {
  readonly name: string
  onClose(): void
  deny(reason: string | undefined): void
}

function DenyDialog({ name, onClose, deny }: DenyDialogProps) {
  const reason = useSignal('')
  const id = useId()
  return (
    <Dialog title={`Deny ${name}`} onClose={onClose}>
      <form method="dialog" class="stack">
        <label for={id}>Reason, which the model reads (optional)</label>
        <textarea
          id={id}
          class="input"
          rows={3}
          maxLength={1000}
          value={reason.value}
          onInput={(event) => (reason.value = event.currentTarget.value)}
        />
        <div class="actions">
          <button type="submit" class="button">
            Cancel
          </button>
          <button type="submit" class="button danger" onClick={() => deny(reason.value.trim() || undefined)}>
            Deny
          </button>
        </div>
      </form>
    </Dialog>
  )
}
