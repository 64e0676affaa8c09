import type { AgentView, Stats, TokenAccount } from '../../../../src/admin/contract.ts'
import { queries } from '../../api/endpoints.ts'
import { useResource } from '../../api/resource.ts'
import { errorsIn, figuresIn, useStats } from '../../api/stats.ts'
import { CodeBlock } from '../../components/code-block.tsx'
import { numberColumn, shareColumn, textColumn } from '../../components/columns.ts'
import { describeRange, RangePicker } from '../../components/range-picker.tsx'
import { EmptyState, Loaded } from '../../components/states.tsx'
import { type Column, RowLink, Table } from '../../components/table.tsx'
import { formatDuration } from '../../format/duration.ts'
import { formatCount, formatShare } from '../../format/number.ts'
import { withQuery } from '../../routing/query.ts'
import { pathTo } from '../../routing/route.ts'

const agentColumns = (stats: Stats | undefined): readonly Column<AgentView>[] => [
  {
    title: 'Agent',
    sortBy: ({ name }) => name,
    cell: ({ name, inherits, isDefault }) => (
      <>
        <RowLink href={withQuery(pathTo('calls'), { agent: name })}>{name}</RowLink>
        {isDefault && <span class="sub">default</span>}
        {inherits !== null && <span class="sub">inherits from {inherits}</span>}
      </>
    ),
  },
  numberColumn('Tools', ({ tools }) => tools),
  textColumn('Exposure', ({ expose }) => expose, { minScreen: 'middle' }),
  {
    title: 'Context',
    alignEnd: true,
    minScreen: 'wide',
    sortBy: ({ tokens }) => tokens.exposed,
    cell: ({ tokens }) => <ContextTokens account={tokens} />,
  },
  {
    title: 'Limits',
    minScreen: 'middle',
    sortBy: ({ perMinute }) => perMinute,
    cell: ({ perMinute, concurrency, limitsPer }) =>
      [
        perMinute !== null && `${formatCount(perMinute)} per minute`,
        concurrency !== null && `${concurrency} concurrent`,
        (perMinute ?? concurrency) !== null && limitsPer === 'client' && 'for each client',
      ]
        .filter(Boolean)
        .join(', ') || 'defaults apply',
  },
  numberColumn('Calls', ({ name }) => figuresIn(stats, name).calls),
  numberColumn('p95', ({ name }) => figuresIn(stats, name).p95Ms, { format: formatDuration, minScreen: 'middle' }),
  shareColumn('Errors', ({ name }) => errorsIn(stats, name), { minScreen: 'wide' }),
  numberColumn('Denials', ({ name }) => figuresIn(stats, name).denials),
]

/** The number of tokens that an agent's tools take up in the context, and the share that is saved (B8). */
function ContextTokens({ account: { direct, exposed, saved } }: { readonly account: TokenAccount }) {
  return (
    <>
      {formatCount(exposed)} tokens
      {saved > 0 && <span class="sub">{formatShare(saved, direct)} saved</span>}
    </>
  )
}

export function Agents() {
  const agents = useResource(queries.agents, 'agents', { pollEveryMs: 15_000 })
  const stats = useStats('agent')
  return (
    <Loaded resource={agents} what="the agents">
      {(rows) => (
        <>
          {rows.length > 0 && (
            <>
              <div class="row">
                <RangePicker range={stats.range} />
              </div>
              <div class="card">
                <Table label="Agents" rows={rows} keyOf={({ name }) => name} columns={agentColumns(stats.data)} />
                <p class="table-foot">Calls, latencies, errors and denials {describeRange(stats.range)}</p>
              </div>
            </>
          )}
          {rows.length <= 1 && (
            <div class="card">
              <NoAgents />
            </div>
          )}
        </>
      )}
    </Loaded>
  )
}

const example = `agents:
  researcher:
    allow:
      servers: [filesystem, github]
    deny:
      tools: { filesystem: ["write_*", "move_file"] }
    perMinute: 120
  researcher.junior:          # inherits from researcher; can only restrict it further
    deny: { servers: [github] }`

/** Introduces agents. Shown if there are no agents or only one. */
function NoAgents() {
  return (
    <EmptyState title="Give each agent its own rules">
      <p>
        Without <code>agents</code> in the configuration, there is a single user who may use everything. As soon as one
        agent is configured, everything that is not allowed is denied:
      </p>
      <CodeBlock text={example} label="Example: agents in toolway.yaml" />
      <p>Then create a key for each agent, and check what the agent may do:</p>
      <CodeBlock
        text={'toolway keys create ci --agent researcher\ntoolway why researcher filesystem.write_file'}
        label="Commands for keys and rules"
      />
    </EmptyState>
  )
}
