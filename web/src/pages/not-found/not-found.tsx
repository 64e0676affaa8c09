import { Page } from '../../components/page.tsx'
import { EmptyState } from '../../components/states.tsx'

export function NotFound() {
  return (
    <Page title="Page not found">
      <div class="card">
        <EmptyState title="This page does not exist">
          <p>The address may be wrong, or the page was removed.</p>
          <a class="button" href="/">
            Go to the overview
          </a>
        </EmptyState>
      </div>
    </Page>
  )
}
