import { Page } from '../components/page.tsx'
import { EmptyState } from '../components/states.tsx'
import { adminPages, type PageName } from '../routing/route.ts'
import { pageTitles } from './menu.tsx'

/** Shown instead of a page to users who are not admins. */
export const AdminsOnly = ({ page }: { readonly page: PageName }) => (
  <Page title={pageTitles[page]}>
    <div class="card">
      <EmptyState title={`Only admins can see ${adminPages[page]}`}>
        <p>
          Your credential does not have admin rights. Sign in with the token that <code>toolway serve</code> prints, or
          with a key created by <code>toolway keys create NAME --admin</code>.
        </p>
        <a class="button" href="/sign-in">
          Sign in with another credential
        </a>
      </EmptyState>
    </div>
  </Page>
)
