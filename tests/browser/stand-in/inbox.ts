import type { ApprovalView, InboxItem, InboxView } from '../../../src/admin/contract.ts'
import type { InboxService } from '../../../src/admin/inbox/inbox-service.ts'
import type { Scene } from './scene.ts'

const items = (now: number): readonly InboxItem[] => [
  {
    ...{ id: 'definition:browser.navigate', kind: 'definition', severity: 'critical', since: now - 60_000 },
    title: 'The definition of browser.navigate changed',
    detail: 'Changed: description. The scanner found: hidden-character, secrecy. No agent can see or use it.',
    link: '/pins/browser.navigate',
    actions: [
      { name: 'Keep blocked', path: 'pins/browser.navigate/block', body: { hash: 'a'.repeat(64) } },
      { name: 'Turn the server off', path: 'servers/browser/disable', danger: true, confirm: 'Its tools disappear.' },
    ],
  },
  {
    ...{ id: 'server:github', kind: 'sign-in', severity: 'warning', since: now - 3_600_000 },
    ...{ title: 'github needs a sign-in', detail: 'The token has expired.', link: '/servers/github' },
    actions: [{ name: 'Sign in', path: 'servers/github/sign-in' }],
  },
  {
    ...{ id: 'rejected:origin', kind: 'rejected', severity: 'info', since: now - 5_000 },
    title: '3 requests refused in the last hour: from a web page of another origin',
    detail: `From 192.0.2.7 (3). Last: https://${'a-very-long-host-name.'.repeat(4)}example.com.`,
    ...{ link: '/audit?decision=DENY', actions: [] },
  },
]

const approvalItem = ({ id, agent, server, tool, principal, rule, askedAt, until }: ApprovalView): InboxItem => ({
  ...{ id: `approval:${id}`, kind: 'approval', severity: 'warning', since: askedAt, until, link: '/approvals' },
  title: `${agent} wants to call ${server}.${tool}`,
  detail: `Caller ${principal}, rule ${rule}.`,
  actions: [{ name: 'Allow once', path: `approvals/${id}`, body: { decision: 'once' } }],
})

/** The inbox of a scene. Dismissed items stay away. Listens to the scene's approvals with `onApprovals`. */
export function sceneInbox(
  scene: Scene,
  now: () => number,
  onApprovals: (listener: () => void) => unknown,
): InboxService {
  let open = scene.name === 'empty' ? [] : items(now())
  let dismissed = 0
  const listeners = new Set<(view: InboxView) => void>()
  const inbox = (): InboxView => ({ items: [...scene.approvals.map(approvalItem), ...open], dismissed, left: 0 })
  const tell = () => {
    for (const listener of listeners) listener(inbox())
  }
  onApprovals(tell)
  return {
    inbox,
    async dismissItem(_, id) {
      open = open.filter((item) => item.id !== id)
      dismissed++
      tell()
      return inbox()
    },
    onInbox(listener) {
      listeners.add(listener)
      return { [Symbol.dispose]: () => void listeners.delete(listener) }
    },
  }
}
