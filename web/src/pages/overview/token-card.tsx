import type { TokenAccount } from '../../../../src/admin/contract.ts'
import { Card } from '../../components/page.tsx'
import { formatCount, formatShare, pluralize } from '../../format/number.ts'
import { pathTo } from '../../routing/route.ts'
import { StackedBar } from './stacked-bar.tsx'

interface TokenCardProps {
  readonly account: TokenAccount
  readonly tools: number
}

/**
 * The number of tokens that the tool definitions take up in a model's context, and the number that Toolway saves (B8).
 */
export function TokenCard({ account, tools }: TokenCardProps) {
  if (account.direct === 0) {
    return (
      <Card title="Context cost">
        <p class="quiet">No tools yet, so no tokens are used.</p>
      </Card>
    )
  }
  return (
    <Card title="Context cost" side={<a href={pathTo('tools')}>{pluralize(tools, 'tool')}</a>}>
      <div class="stack tight">
        <StackedBar
          parts={[
            { key: 'exposed', size: account.exposed, tone: 'info' },
            { key: 'saved', size: account.saved, tone: 'quiet' },
          ]}
        />
        {account.saved > 0 ? <SavedTokens account={account} /> : <NoSavings account={account} />}
      </div>
    </Card>
  )
}

function SavedTokens({ account: { direct, exposed, saved } }: { readonly account: TokenAccount }) {
  return (
    <p>
      All tool definitions together take <strong>{formatCount(direct)}</strong> tokens. A model reads only{' '}
      <strong>{formatCount(exposed)}</strong>: {formatShare(saved, direct)} saved.
    </p>
  )
}

/**
 * Shown if no tokens are saved. With `expose: both`, a model reads the definitions of all tools and of the meta-tools.
 */
function NoSavings({ account: { direct, exposed } }: { readonly account: TokenAccount }) {
  return (
    <>
      <p>
        All tool definitions together take <strong>{formatCount(direct)}</strong> tokens, and a model reads{' '}
        {exposed > direct ? (
          <>
            <strong>{formatCount(exposed)}</strong>: all of them plus the meta-tools.
          </>
        ) : (
          'all of them.'
        )}
      </p>
      <p class="quiet">
        With <code>expose: meta</code>, an agent sees only the meta-tools.
      </p>
    </>
  )
}
