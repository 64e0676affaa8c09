import { inboxCount, liveApprovals, liveInbox, liveOverview } from '../api/live.ts'
import { isAdmin } from '../api/session.ts'
import { Icon } from '../components/icon.tsx'
import { route } from '../routing/location.ts'
import { adminPages, type PageName, pages, pathTo } from '../routing/route.ts'

export const pageTitles: Readonly<Record<PageName, string>> = {
  overview: 'Overview',
  servers: 'Servers',
  tools: 'Tools',
  skills: 'Skills',
  pins: 'Definitions',
  chat: 'Chat',
  calls: 'Calls',
  approvals: 'Approvals',
  policy: 'Policy',
  keys: 'Keys',
  audit: 'Audit',
  config: 'Configuration',
}

/** The pages that the user may see. */
export const visiblePages = (): readonly PageName[] => pages.filter((page) => isAdmin.value || !(page in adminPages))

export function Menu() {
  return (
    <nav aria-label="Pages" class="menu">
      {visiblePages().map((page) => (
        <a key={page} href={pathTo(page)} aria-current={route.value.page === page ? 'page' : undefined}>
          <Icon name={page} />
          {pageTitles[page]}
          {page === 'overview' && <InboxCount />}
          {page === 'servers' && <UnhealthyCount />}
          {page === 'approvals' && <WaitingCount />}
        </a>
      ))}
    </nav>
  )
}

/** Calls that wait for approval. In an admin's menu, the overview's count includes them. */
function WaitingCount() {
  const waiting = liveApprovals.value?.length
  if (!waiting || liveInbox.value) return null
  return (
    <span class="count tone-warn" title={`${waiting} waiting`}>
      {waiting}
      <span class="hidden"> waiting</span>
    </span>
  )
}

function InboxCount() {
  const count = inboxCount.value
  if (!count) return null
  const urgent = liveInbox.value?.items.some(({ severity }) => severity === 'critical')
  return (
    <span class={`count ${urgent ? 'tone-bad' : 'tone-warn'}`} title={`${count} need attention`}>
      {count}
      <span class="hidden"> need attention</span>
    </span>
  )
}

function UnhealthyCount() {
  const unhealthy = liveOverview.value?.unhealthy
  if (!unhealthy) return null
  return (
    <span class="count tone-bad" title={`${unhealthy} not healthy`}>
      {unhealthy}
      <span class="hidden"> not healthy</span>
    </span>
  )
}
