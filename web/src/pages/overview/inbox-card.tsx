import { Button } from '../../components/button.tsx'
import './inbox.css'
import type { InboxAction, InboxItem, ServerView } from '../../../../src/admin/contract.ts'
import { actions, type ServerAction } from '../../api/endpoints.ts'
import { liveApprovals, liveInbox } from '../../api/live.ts'
import { ActionButton } from '../../components/action-button.tsx'
import { Icon } from '../../components/icon.tsx'
import { withNotice } from '../../components/notices.tsx'
import { Card } from '../../components/page.tsx'
import { ElapsedTime } from '../../components/times.tsx'
import { pluralize } from '../../format/number.ts'
import { notifications, setNotifications } from '../../shell/notifications.ts'
import { FirstApprovals, useHeldApprovals } from '../approvals/approval-list.tsx'
import { actionOutcome } from '../servers/action-outcome.ts'

/** What the link to an item's page says, for kinds that are dealt with there. */
const linkNames: Partial<Readonly<Record<InboxItem['kind'], string>>> = {
  approval: 'Review',
  audit: 'Open the log',
  definition: 'Review',
  key: 'Rotate…',
  rejected: 'Show requests',
  reload: 'Open configuration',
  store: 'Show settings',
}

const tones = { critical: 'tone-bad', warning: 'tone-warn', info: 'tone-info' } as const

/** What needs a person, with the actions beside it. Renders nothing until the inbox is known, which only admins get. */
export function InboxCard() {
  const inbox = liveInbox.value
  const known = new Set(inbox?.items.map(({ id }) => id))
  const approvals = (liveApprovals.value ?? []).filter(({ id }) => known.has(`approval:${id}`))
  const held = useHeldApprovals(approvals)
  if (!inbox) return null
  const { dismissed, left } = inbox
  const shown = new Set(approvals.map(({ id }) => `approval:${id}`))
  const items = inbox.items.filter(({ id }) => !shown.has(id))
  const hidden = [
    left > 0 && `${left} more`,
    dismissed > 0 &&
      `${pluralize(dismissed, 'item')} dismissed until ${dismissed === 1 ? 'it changes' : 'they change'}`,
  ].filter(Boolean)
  return (
    <Card title="Needs attention" side={<NotificationButton />} flush>
      {held.listed.length > 0 && (
        <div class="inbox-approvals stack">
          <FirstApprovals held={held} />
        </div>
      )}
      {items.length > 0 && (
        <ul class="inbox" aria-label="Needs attention">
          {items.map((item) => (
            <Item key={item.id} item={item} />
          ))}
        </ul>
      )}
      {inbox.items.length === 0 && <p class="inbox-note quiet">Nothing needs attention.</p>}
      {hidden.length > 0 && <p class="inbox-note quiet small">{hidden.join(', ')}</p>}
    </Card>
  )
}

function Item({ item }: { readonly item: InboxItem }) {
  const { id, severity, title, detail, since, link } = item
  const dismiss = () =>
    withNotice(
      async () => {
        liveInbox.value = await actions.dismissItem(id)
      },
      () => 'Dismissed until it changes.',
    )
  // Nobody should answer an approval here, without its arguments: they arrive a moment later.
  const shownActions = item.kind === 'approval' ? [] : item.actions
  return (
    <li class={severity === 'critical' ? 'note-bad' : ''}>
      <span class={tones[severity]}>
        <Icon name={severity === 'info' ? 'info' : 'warning'} />
        <span class="hidden">{severity}: </span>
      </span>
      <div class="inbox-text">
        <strong>{link === null ? title : <a href={link}>{title}</a>}</strong>{' '}
        <span class="quiet small">
          <ElapsedTime since={since} />
        </span>
        {detail !== '' && <div class="quiet">{detail}</div>}
      </div>
      <span class="row">
        {link !== null && item.kind in linkNames && (
          <a class={`button ${item.actions.length > 0 ? 'primary' : ''}`} href={link}>
            {linkNames[item.kind]}
          </a>
        )}
        {shownActions.map((action) => (
          <ActionButton
            key={action.name}
            name={action.name}
            kind={action.danger ? 'danger' : ''}
            confirm={action.confirm === undefined ? undefined : { title: `${action.name}?`, text: action.confirm }}
            run={() => perform(action)}
          />
        ))}
        {item.until === undefined && (
          <Button kind="plain icon tiny" icon="close" aria-label={`Dismiss: ${title}`} onClick={dismiss} />
        )}
      </span>
    </li>
  )
}

/** Runs an action. A sign-in returns the page to open, and a restart or the like the server's new state. */
const perform = ({ name, path, body }: InboxAction) =>
  withNotice(
    async () => {
      const result = await actions.inbox(path, body)
      if (typeof result?.url === 'string') {
        location.assign(result.url)
        return 'Opening the sign-in page…'
      }
      if (result?.state === 'checking') return 'Verification started. See the result on the Audit page.'
      const [, action] = /^servers\/[^/]+\/(restart|disable)$/.exec(path) ?? []
      // Throws if the server still does not work.
      return action ? actionOutcome(action as ServerAction, { process: null }, result as ServerView) : `${name}: done.`
    },
    (message) => message,
  )

function NotificationButton() {
  const state = notifications.value
  if (state === 'unsupported') return null
  const on = state === 'on'
  return (
    <Button
      kind="tiny"
      aria-pressed={on}
      title={state === 'denied' ? 'The browser does not allow notifications for this page' : undefined}
      onClick={() => void setNotifications(!on)}
    >
      {on ? 'Notifications on' : 'Notify me'}
    </Button>
  )
}
