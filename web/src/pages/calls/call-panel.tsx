import type { CallDetail } from '../../../../src/serve/admin/contract.ts'
import { read } from '../../api/endpoints.ts'
import { liveCalls } from '../../api/live.ts'
import { useResource } from '../../api/resource.ts'
import { took } from '../../format/duration.ts'
import { Icon } from '../../parts/icon.tsx'
import { outcomeLooks } from '../../parts/looks.ts'
import { Mark } from '../../parts/mark.tsx'
import { Loaded } from '../../parts/states.tsx'
import { query } from '../../routing/location.ts'
import { pathTo } from '../../routing/route.ts'
import { AuditRecords } from './audit-records.tsx'
import { callLink, whatOf } from './call-columns.tsx'
import { CallFacts } from './call-facts.tsx'
import { Timeline } from './timeline.tsx'

export function CallPanel({ id }: { readonly id: string }) {
  const live = liveCalls.value.find((call) => call.id === id)
  // The outcome is part of the key, so that the details reload when the call ends.
  const call = useResource(read.call(id), `${id} ${live?.outcome}`, live?.outcome === 'running' ? { every: 1000 } : {})
  const back = pathTo('calls') + (query.value.size > 0 ? `?${query.value}` : '')
  const shown = call.data ?? live
  return (
    <aside class="card split-detail" aria-label="Call">
      <div class="card-head">
        <h2 data-focus tabIndex={-1}>
          {shown ? whatOf(shown) : 'Call'}
        </h2>
        <a class="button plain icon tiny" href={back} data-back aria-label="Close call" title="Close (Esc)">
          <Icon name="close" size={14} />
        </a>
      </div>
      <div class="card-body stack">
        <Loaded of={call} what="the call">
          {(data) => <Detail call={data} />}
        </Loaded>
      </div>
    </aside>
  )
}

function Detail({ call }: { readonly call: CallDetail }) {
  return (
    <>
      <p class="row">
        <Mark look={outcomeLooks[call.outcome]} chip /> {took(call.ms)}
      </p>
      <CallFacts call={call} />
      <section class="stack tight">
        <h3>Timeline</h3>
        <Timeline call={call} />
      </section>
      {call.children.length > 0 && (
        <section class="stack tight">
          <h3>Child calls</h3>
          <ul class="stack tight">
            {call.children.map((child) => (
              <li key={child.id} class="row spread">
                <span class="row">
                  <Mark look={outcomeLooks[child.outcome]} />
                  <a href={callLink(child.id)}>{whatOf(child)}</a>
                </span>
                <span class="quiet">{took(child.ms)}</span>
              </li>
            ))}
          </ul>
        </section>
      )}
      <AuditRecords begin={call.audit.begin} end={call.audit.end} />
    </>
  )
}
