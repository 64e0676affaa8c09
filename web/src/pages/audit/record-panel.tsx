import { useEffect, useRef } from 'preact/hooks'
import type { AuditRow } from '../../../../src/admin/contract.ts'
import { CodeBlock } from '../../components/code-block.tsx'
import { Icon } from '../../components/icon.tsx'
import { JsonTree } from '../../components/json-tree.tsx'
import { StatusBadge } from '../../components/status-badge.tsx'
import { decisionStatus } from '../../components/statuses.ts'
import { pathTo } from '../../routing/route.ts'
import { recordLink } from './audit-columns.tsx'
import { targetOf, textField } from './audit-row.ts'

export function RecordPanel({ row }: { readonly row: AuditRow }) {
  const heading = useRef<HTMLHeadingElement>(null)
  useEffect(() => heading.current?.focus(), [])
  const call = textField(row, 'call')
  return (
    <aside class="card split-detail" aria-label="Audit record">
      <div class="card-head">
        <h2 ref={heading} tabIndex={-1}>
          {targetOf(row)}
        </h2>
        <a
          class="button plain icon tiny"
          href={recordLink(undefined)}
          data-back
          aria-label="Close record"
          title="Close (Esc)"
        >
          <Icon name="close" size={14} />
        </a>
      </div>
      <div class="card-body stack">
        <p class="row">
          <StatusBadge status={decisionStatus(row.decision, row.is_error === true)} chip />
          {call !== '' && <a href={pathTo('calls', call)}>Call timeline</a>}
        </p>
        <JsonTree value={row} open={3} />
        {call !== '' && <CodeBlock text={`toolway audit query --call ${call}`} label="Equivalent command" />}
      </div>
    </aside>
  )
}
