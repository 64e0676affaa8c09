import { Page } from '../parts/page.tsx'
import { Empty } from '../parts/states.tsx'

export function Missing() {
  return (
    <Page title="Page not found">
      <div class="card">
        <Empty title="This page does not exist">
          <p>The address may be wrong, or the page was removed.</p>
          <a class="button" href="/">
            Go to the overview
          </a>
        </Empty>
      </div>
    </Page>
  )
}
