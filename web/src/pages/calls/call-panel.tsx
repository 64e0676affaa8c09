import type { AuditRow, CallDetail } from '../../../../src/admin/contract.ts'
import { queries } from '../../api/endpoints.ts'
import { liveCalls } from '../../api/live.ts'
import { useResource } from '../../api/resource.ts'
import { isAdmin } from '../../api/session.ts'
import { CopyButton } from '../../components/copy-button.tsx'
import { Fact, Facts } from '../../components/facts.tsx'
import { Icon } from '../../components/icon.tsx'
import { JsonTree } from '../../components/json-tree.tsx'
import { Loaded } from '../../components/states.tsx'
import { StatusBadge } from '../../components/status-badge.tsx'
import { outcomeStatuses } from '../../components/statuses.ts'
import { ClockTime, RelativeTime } from '../../components/times.tsx'
import { formatDuration } from '../../format/duration.ts'
import { query } from '../../routing/location.ts'
import { withQuery } from '../../routing/query.ts'
import { pathTo } from '../../routing/route.ts'
import { CallActions } from './call-actions.tsx'
import { targetOf } from './call-columns.tsx'
import { CallTree } from './call-tree.tsx'
import { CapturedContent } from './captured.tsx'
import { Timeline } from './timeline.tsx'
import { waitedMs } from './timeline-bars.ts'

export function CallPanel({ id }: { readonly id: string }) {
  const live = liveCalls.value.find((call) => call.id === id)
  // The outcome is part of the key, so that the details reload when the call ends.
  const loaded = useResource(
    queries.call(id),
    `${id} ${live?.outcome}`,
    live?.outcome === 'running' ? { pollEveryMs: 1000 } : {},
  )
  // A call that the gateway does not know any more is not shown as running.
  const call = loaded.error?.status === 404 ? { ...loaded, data: undefined } : loaded
  const back = pathTo('calls') + (query.value.size > 0 ? `?${query.value}` : '')
  const shown = call.data ?? live
  return (
    <aside class="card split-detail" aria-label="Call">
      <div class="card-head">
        <h2 data-focus tabIndex={-1}>
          {shown ? targetOf(shown) : 'Call'}
        </h2>
        <a class="button plain icon tiny" href={back} data-back aria-label="Close call" title="Close (Esc)">
          <Icon name="close" size={14} />
        </a>
      </div>
      <div class="card-body stack">
        <Loaded resource={call} what="the call">
          {(data) => <CallDetails call={data} />}
        </Loaded>
      </div>
    </aside>
  )
}

function CallDetails({ call }: { readonly call: CallDetail }) {
  const waited = waitedMs(call)
  return (
    <>
      <p class="row">
        <StatusBadge status={outcomeStatuses[call.outcome]} chip /> {formatDuration(call.ms)}
        {waited > 0 && <span class="quiet">without {formatDuration(waited)} of waiting for a person</span>}
      </p>
      <CallActions key={call.id} call={call} />
      <CallFacts call={call} />
      <CapturedContent call={call} />
      <section class="stack tight">
        <h3>Timeline</h3>
        <Timeline call={call} />
      </section>
      {call.children.length > 0 && (
        <section class="stack tight">
          <h3>Inner calls</h3>
          <CallTree calls={call.children} parent={call.id} />
        </section>
      )}
      <AuditRecords begin={call.audit.begin} end={call.audit.end} />
    </>
  )
}

interface AuditRecordsProps {
  readonly begin: AuditRow | null
  readonly end: AuditRow | null
}

function AuditRecords({ begin, end }: AuditRecordsProps) {
  return (
    <section class="stack tight">
      <h3>Audit records</h3>
      {begin === null && end === null ? (
        <p class="quiet">
          {isAdmin.value
            ? 'None yet: records are written in batches, and this call is very recent.'
            : 'Only admins can see them.'}
        </p>
      ) : (
        <>
          {begin && <JsonTree value={{ before: begin }} open={1} />}
          {end && <JsonTree value={{ after: end }} open={2} />}
        </>
      )}
    </section>
  )
}

/** A chat is not a call itself: its link lists the calls that it made. */
const parentLink = (parent: string): string =>
  parent.startsWith('chat-') ? withQuery(pathTo('calls'), { parent }) : pathTo('calls', parent)

function CallFacts({ call }: { readonly call: CallDetail }) {
  const rule = call.audit.end?.rule
  return (
    <Facts>
      <Fact name="Started">
        <ClockTime at={call.at} /> (<RelativeTime at={call.at} />)
      </Fact>
      <Fact name="Agent">
        {call.agent} <span class="quiet">using credential</span> {call.principal}
      </Fact>
      <Fact name="Operation">{call.operation}</Fact>
      {call.server !== '' && (
        <Fact name="Server">
          <a href={pathTo('servers', call.server)}>{call.server}</a>
        </Fact>
      )}
      {call.cache !== null && (
        <Fact name="Cache">
          {
            {
              hit: 'served from the cache',
              miss: 'not in the cache',
              joined: 'shared the result of an identical call in flight',
            }[call.cache]
          }
        </Fact>
      )}
      {call.code !== null && (
        <Fact name="Code">
          {/^[A-Z_]+$/.test(call.code) ? <a href={pathTo('errors', call.code)}>{call.code}</a> : call.code}
        </Fact>
      )}
      {typeof rule === 'string' && (
        <Fact name="Rule">
          <code>{rule}</code>{' '}
          {call.operation === 'call_tool' && (
            <a
              href={withQuery(pathTo('policy'), {
                view: 'why',
                agent: call.agent,
                tool: `${call.server}.${call.name}`,
              })}
            >
              Why?
            </a>
          )}
        </Fact>
      )}
      {call.parent !== null && (
        <Fact name="Caused by">
          <a href={parentLink(call.parent)}>
            <code>{call.parent}</code>
          </a>
        </Fact>
      )}
      <Fact name="ID" class="row">
        <code>{call.id}</code> <CopyButton text={call.id} label="Copy call ID" />
      </Fact>
    </Facts>
  )
}
