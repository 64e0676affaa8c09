import { useSignal } from '@preact/signals'
import type { RefObject } from 'preact'
import { useId, useRef } from 'preact/hooks'
import type { AnswerApproval, ApprovalView } from '../../../../src/admin/contract.ts'
import { actions } from '../../api/endpoints.ts'
import { removeLiveApproval } from '../../api/live.ts'
import { ActionButton } from '../../components/action-button.tsx'
import { BreakableName } from '../../components/breakable-name.tsx'
import { Button } from '../../components/button.tsx'
import { CodeBlock } from '../../components/code-block.tsx'
import { Dialog } from '../../components/dialog.tsx'
import { Fact, Facts } from '../../components/facts.tsx'
import { withNotice } from '../../components/notices.tsx'
import { Note } from '../../components/states.tsx'
import { RelativeTime } from '../../components/times.tsx'
import { formatTimeLeft } from '../../format/duration.ts'
import { pathTo } from '../../routing/route.ts'
import { now } from '../../shell/now.ts'
import { type ListedApproval, updateListed } from './held-approvals.ts'

type ApprovalDecision = AnswerApproval['decision']

/** The approvals in a list, and a reference to its element. */
interface HeldApprovals {
  readonly listed: readonly ListedApproval[]
  readonly list: RefObject<HTMLUListElement | null>
  /** Whether buttons work: not in the moment after the list has moved. */
  isSettled(): boolean
}

/** How long buttons do nothing after the list has moved: a click may have been meant for what was there before. */
const settleMs = 500

/** Keeps approvals that ended in the list for some seconds, and while the pointer, the focus or a dialog is in it. */
export function useHeldApprovals(waiting: readonly ApprovalView[]): HeldApprovals {
  const list = useRef<HTMLUListElement>(null)
  const listed = useRef<readonly ListedApproval[]>([])
  const movedAt = useRef(Number.NEGATIVE_INFINITY)
  const before = listed.current
  const inUse = list.current?.matches(':hover, :has(:focus-visible, dialog[open])') ?? false
  listed.current = updateListed(before, waiting, { now: Date.now(), inUse })
  if (before.some(({ approval }, at) => listed.current[at]?.approval.id !== approval.id)) movedAt.current = Date.now()
  // Render again until those that ended are gone.
  if (listed.current.some(({ endedAt }) => endedAt !== undefined)) now.value
  return { listed: listed.current, list, isSettled: () => Date.now() - movedAt.current >= settleMs }
}

/** The calls that wait for a person, each with the buttons to answer it. */
export function ApprovalList({ held: { listed, list, isSettled } }: { readonly held: HeldApprovals }) {
  return (
    <ul ref={list} class="stack approvals" aria-label="Calls waiting for approval">
      {listed.map(({ approval, endedAt }) => (
        <ApprovalItem key={approval.id} approval={approval} ended={endedAt !== undefined} isSettled={isSettled} />
      ))}
    </ul>
  )
}

/** The first three approvals that wait, those that ended between them, and a link to all if there are more. */
export function FirstApprovals({ held }: { readonly held: HeldApprovals }) {
  const { listed } = held
  const waiting = listed.filter(({ endedAt }) => endedAt === undefined)
  const third = waiting[2]
  return (
    <>
      <ApprovalList held={{ ...held, listed: third ? listed.slice(0, listed.indexOf(third) + 1) : listed }} />
      {waiting.length > 3 && <a href={pathTo('approvals')}>All {waiting.length} approvals</a>}
    </>
  )
}

const done: Readonly<Record<ApprovalDecision, string>> = {
  once: 'Allowed',
  session: 'Allowed for the session',
  deny: 'Denied',
}

interface ApprovalItemProps {
  readonly approval: ApprovalView
  readonly ended: boolean
  isSettled(): boolean
}

function ApprovalItem({ approval, ended, isSettled }: ApprovalItemProps) {
  const { id, agent, principal, session, server, tool, rule, askedAt, until, mayAnswer } = approval
  const denying = useSignal(false)
  const answered = useSignal<ApprovalDecision | undefined>(undefined)
  const name = `${server}.${tool}`
  const answer = (decision: ApprovalDecision, reason?: string) =>
    withNotice(
      async () => {
        await actions.answerApproval(id, { decision, reason })
        answered.value = decision
        removeLiveApproval(id)
      },
      () => `${done[decision]}: ${name}.`,
    )
  const allow = async (decision: ApprovalDecision) => {
    if (isSettled()) await answer(decision)
  }
  return (
    <li class="card approval" aria-label={`${agent} wants to call ${name}`}>
      <div class="card-head">
        <h3>
          <strong>{agent}</strong> wants to call{' '}
          <code>
            <BreakableName name={name} />
          </code>
        </h3>
        {ended ? (
          <span class="quiet nowrap">{answered.value ? done[answered.value] : 'No longer waiting'}</span>
        ) : (
          <Countdown from={askedAt} until={until} />
        )}
      </div>
      <div class="card-body stack">
        <CodeBlock text={approval.arguments} label={`Arguments for ${name}`} wrap />
        <Facts>
          <Fact name="Caller">
            {principal} <span class="quiet">session {session}</span>
          </Fact>
          <Fact name="Rule">
            <code>{rule}</code>
          </Fact>
          <Fact name="Asked">
            <RelativeTime at={askedAt} /> <a href={pathTo('calls', approval.call)}>View call</a>
          </Fact>
        </Facts>
        {mayAnswer ? (
          <div class="row">
            <ActionButton
              name="Allow once"
              icon="check"
              kind="primary"
              everyone
              disabled={ended}
              run={() => allow('once')}
            />
            <ActionButton name="Allow for this session" everyone disabled={ended} run={() => allow('session')} />
            <Button kind="danger" aria-disabled={ended} onClick={() => (denying.value = !ended && isSettled())}>
              Deny…
            </Button>
          </div>
        ) : (
          <p class="quiet">You may not answer this call (approvals.by).</p>
        )}
        {denying.value && (
          <DenyDialog
            name={name}
            ended={ended}
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
  readonly ended: boolean
  onClose(): void
  deny(reason: string | undefined): void
}

function DenyDialog({ name, ended, onClose, deny }: DenyDialogProps) {
  const reason = useSignal('')
  const id = useId()
  return (
    <Dialog title={`Deny ${name}`} onClose={onClose}>
      <form method="dialog" class="stack">
        {ended && (
          <Note tone="bad">
            <p>This call no longer waits: it was cancelled, timed out or was answered elsewhere.</p>
          </Note>
        )}
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
          <Button type="submit">{ended ? 'Close' : 'Cancel'}</Button>
          <Button kind="danger" type="submit" disabled={ended} onClick={() => deny(reason.value.trim() || undefined)}>
            Deny
          </Button>
        </div>
      </form>
    </Dialog>
  )
}
