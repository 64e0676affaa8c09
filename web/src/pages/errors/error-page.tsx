import { Content } from '../../components/markdown/markdown.tsx'
import { Page } from '../../components/page.tsx'
import { EmptyState } from '../../components/states.tsx'
import { errorPage } from './pages.ts'

/** The documentation page for an error code. */
export function ErrorPage({ code }: { readonly code: string }) {
  const page = errorPage(code)
  return (
    <Page title={code}>
      <div class="card">
        {page ? (
          <div class="card-body markdown">
            <Content nodes={page.slice(1)} headingOffset={0} />
          </div>
        ) : (
          <EmptyState title="Unknown error code">
            <p class="quiet">This code is not one of Toolway's. It may come from a server.</p>
          </EmptyState>
        )}
      </div>
    </Page>
  )
}
