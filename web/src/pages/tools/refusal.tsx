import { Note } from '../../parts/states.tsx'
import { pathTo } from '../../routing/route.ts'

interface RefusalProps {
  readonly of: { readonly code: string; readonly message: string; readonly rule?: string }
}

/** Why a call was refused or failed: message, code and rule. */
export function Refusal({ of: { code, message, rule } }: RefusalProps) {
  return (
    <Note tone="bad">
      <p>{message}</p>
      <dl class="facts">
        <dt>Code</dt>
        <dd>
          <a href={pathTo('errors', code)}>
            <code>{code}</code>
          </a>
        </dd>
        {rule !== undefined && (
          <>
            <dt>Rule</dt>
            <dd>
              <code>{rule}</code>
            </dd>
          </>
        )}
      </dl>
    </Note>
  )
}
