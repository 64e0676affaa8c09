import { liveOverview } from '../api/live.ts'
import { isAdmin } from '../api/session.ts'
import { Icon } from '../components/icon.tsx'
import { route } from '../routing/location.ts'
import { type PageName, pages, pathTo } from '../routing/route.ts'

export const pageTitles: Readonly<Record<PageName, string>> = {
  overview: 'Overview',
  servers: 'Servers',
  tools: 'Tools',
  chat: 'Chat',
  calls: 'Calls',
  policy: 'Policy',
  audit: 'Audit',
  config: 'Configuration',
}

/** Users who are not admins do not see the pages that would refuse them. */
const isPageVisible = (page: PageName): boolean => isAdmin.value || (page !== 'audit' && page !== 'config')

export function Menu() {
  return (
    <nav aria-label="Pages" class="menu">
      {pages.filter(isPageVisible).map((page) => (
        <a key={page} href={pathTo(page)} aria-current={route.value.page === page ? 'page' : undefined}>
          <Icon name={page} />
          {pageTitles[page]}
          {page === 'servers' && <UnhealthyCount />}
        </a>
      ))}
    </nav>
  )
}

function UnhealthyCount() {
  const unhealthy = liveOverview.value?.unhealthy ?? 0
  if (unhealthy === 0) return null
  return (
    <span class="count tone-bad" title={`${unhealthy} not healthy`}>
      {unhealthy}
      <span class="hidden"> not healthy</span>
    </span>
  )
}
