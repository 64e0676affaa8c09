import type { AuditRow } from '../../../../src/serve/admin/contract.ts'
import { isAdmin } from '../../api/session.ts'
import { JsonTree } from '../../parts/json-tree.tsx'

interface RecordsProps {
  readonly begin: AuditRow | null
  readonly end: AuditRow | null
}

export function AuditRecords({ begin, end }: RecordsProps) {
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
