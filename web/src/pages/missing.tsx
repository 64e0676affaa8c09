import { Page } from '../parts/page.tsx'
import { Empty } from '../parts/states.tsx'

/** An address that leads nowhere. */
export function Missing() {
  return (
    <Page title="Nothing here">
      <div class="card">
        <Empty title="There is no such page">
          <p>The address may be mistyped, or what it was about is gone.</p>
          <a class="button" href="/">
            Go to the overview
          </a>
        </Empty>
      </div>
    </Page>
  )
}
