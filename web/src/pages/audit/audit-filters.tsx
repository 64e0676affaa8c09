import { Choose, Search, When, Word } from '../../parts/filters.tsx'
import { Icon } from '../../parts/icon.tsx'
import { query, replaceAddress } from '../../routing/location.ts'
import { pathTo } from '../../routing/route.ts'

const decisions = [
  ['ALLOW', 'ALLOW'],
  ['DENY', 'DENY'],
  ['ERROR', 'ERROR'],
  ['TIMEOUT', 'TIMEOUT'],
] as const

export function AuditFilters() {
  return (
    <div class="filters">
      <Search label="Search arguments" />
      <Word label="Agent" name="agent" placeholder="ci, team.*" />
      <Word label="Server" name="server" placeholder="github" />
      <Word label="Tool" name="tool" placeholder="delete_*" />
      <Word label="Caused by" name="parent" placeholder="chat or call ID" />
      <Choose label="Decision" name="decision" options={decisions} all="any" />
      <When label="From" name="from" />
      <When label="To" name="to" />
      {query.value.size > 0 && (
        <button type="button" class="button" onClick={() => replaceAddress(pathTo('audit'))}>
          <Icon name="close" size={12} /> Clear
        </button>
      )}
    </div>
  )
}
