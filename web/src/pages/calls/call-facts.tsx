import type { CallDetail } from '../../../../src/serve/admin/contract.ts'
import { Copy } from '../../parts/copy.tsx'
import { Ago, At } from '../../parts/moment.tsx'
import { withQuery } from '../../routing/query.ts'
import { pathTo } from '../../routing/route.ts'

export function CallFacts({ call }: { readonly call: CallDetail }) {
  const rule = call.audit.end?.rule
  return (
    <dl class="facts">
      <dt>Started</dt>
      <dd>
        <At at={call.at} /> (<Ago at={call.at} />)
      </dd>
      <dt>Agent</dt>
      <dd>
        {call.agent} <span class="quiet">using credential</span> {call.principal}
      </dd>
      <dt>Operation</dt>
      <dd>{call.operation}</dd>
      {call.server !== '' && (
        <>
          <dt>Server</dt>
          <dd>
            <a href={pathTo('servers', call.server)}>{call.server}</a>
          </dd>
        </>
      )}
      {call.cache !== null && (
        <>
          <dt>Cache</dt>
          <dd>
            {
              {
                hit: 'served from the cache',
                miss: 'not in the cache',
                joined: 'shared the result of an identical call in flight',
              }[call.cache]
            }
          </dd>
        </>
      )}
      {call.code !== null && (
        <>
          <dt>Code</dt>
          <dd>{/^[A-Z_]+$/.test(call.code) ? <a href={pathTo('errors', call.code)}>{call.code}</a> : call.code}</dd>
        </>
      )}
      {typeof rule === 'string' && (
        <>
          <dt>Rule</dt>
          <dd>
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
          </dd>
        </>
      )}
      {call.parent !== null && (
        <>
          <dt>Caused by</dt>
          <dd>
            <a href={pathTo('calls', call.parent)}>
              <code>{call.parent}</code>
            </a>
          </dd>
        </>
      )}
      <dt>ID</dt>
      <dd class="row">
        <code>{call.id}</code> <Copy text={call.id} label="Copy call ID" />
      </dd>
    </dl>
  )
}
