import { Code } from '../../parts/code.tsx'
import { Empty } from '../../parts/states.tsx'
import { pathTo } from '../../routing/route.ts'

export function NoCalls({ filtered }: { readonly filtered: boolean }) {
  if (filtered) {
    return (
      <Empty title="No matching calls">
        <p class="quiet">
          Only the most recent calls are kept here. <a href={pathTo('audit')}>The audit log</a> has all of them.
        </p>
      </Empty>
    )
  }
  return (
    <Empty title="No calls yet">
      <p>
        Calls appear here as soon as they start. <a href="/">Connect a client</a>, or make a call yourself:
      </p>
      <Code text="toolway call native.hash data=hello algorithm=sha256" label="Command to make a call" />
      <p class="quiet">
        Or <a href={pathTo('tools')}>try a tool</a> in the browser.
      </p>
    </Empty>
  )
}
