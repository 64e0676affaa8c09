import type { BudgetView } from '../../../../src/admin/contract.ts'
import { numberColumn, textColumn } from '../../components/columns.ts'
import { Card } from '../../components/page.tsx'
import { type Column, Table } from '../../components/table.tsx'
import { formatBudget, formatShare } from '../../format/number.ts'

/** Things that wait or are kept, with their bounds. */
export function BudgetCard({ budgets }: { readonly budgets: readonly BudgetView[] }) {
  return (
    <Card title="Budgets" flush>
      <Table label="Budgets" rows={budgets} keyOf={({ name }) => name} columns={columns} sort={{ param: 'budgets' }} />
      <p class="table-foot">
        <span>
          What waits or is kept, for all callers and for the caller that uses most. At a bound, new requests are
          refused, or the oldest are dropped.
        </span>
      </p>
    </Card>
  )
}

/** `request_bytes` as `Request bytes`. */
const titleOf = ({ name }: BudgetView): string => {
  const words = name.replaceAll('_', ' ')
  return words.charAt(0).toUpperCase() + words.slice(1)
}

const amount = ({ name }: BudgetView, value: number): string => formatBudget(name, value)

/** The tone for a bound that is nearly reached. */
const toneOf = (used: number, limit: number): string | undefined => (used >= limit * 0.9 ? 'tone-warn' : undefined)

const columns: readonly Column<BudgetView>[] = [
  textColumn('Budget', titleOf),
  {
    title: 'In use',
    alignEnd: true,
    sortBy: ({ used, limit }) => used / limit,
    cell: (budget) => (
      <span class={toneOf(budget.used, budget.limit)}>
        {amount(budget, budget.used)} ({formatShare(budget.used, budget.limit)})
      </span>
    ),
  },
  {
    title: 'Limit',
    alignEnd: true,
    minScreen: 'middle',
    sortBy: ({ limit }) => limit,
    cell: (budget) => amount(budget, budget.limit),
  },
  {
    title: 'Largest caller',
    alignEnd: true,
    sortBy: ({ largest, perCaller }) => largest / perCaller,
    cell: (budget) => <span class={toneOf(budget.largest, budget.perCaller)}>{amount(budget, budget.largest)}</span>,
  },
  {
    title: 'Limit per caller',
    alignEnd: true,
    minScreen: 'middle',
    sortBy: ({ perCaller }) => perCaller,
    cell: (budget) => amount(budget, budget.perCaller),
  },
  numberColumn('Refused', ({ refused }) => refused),
]
