import { fixedBudgets } from '../src/core/limits/budget.ts'
import { type FixedLimit, fixedLimits } from '../src/core/limits/fixed-limits.ts'

/** The tables of fixed limits and budgets in docs/operations/, generated from the values that the program uses. */

const end = '<!-- end -->'

/** A page with its table of fixed limits. */
export function withFixedLimits(page: string): string {
  const rows = Object.values(fixedLimits).map((limit) => [limit.what, amount(limit), limit.beyond])
  return withTable(page, 'src/core/limits/fixed-limits.ts', ['limit', 'value', 'beyond it'], rows)
}

/** A page with its table of fixed budgets. */
export function withFixedBudgets(page: string): string {
  const rows = Object.entries(fixedBudgets).map(([name, { limit, perCaller }]) => {
    const { counts, isBytes = false, perOne, beyond } = budgetTexts[name as keyof typeof fixedBudgets]
    const unit = isBytes ? 'bytes' : undefined
    const own = [amount({ value: perCaller, unit }), ...(perOne === undefined ? [] : [perOne])].join('; ')
    return [`\`${name}\``, counts, amount({ value: limit, unit }), own, beyond]
  })
  const heads = ['budget', 'what it counts', 'in all', 'per caller', 'at the bound']
  return withTable(page, 'src/core/limits/budget.ts', heads, rows)
}

function withTable(page: string, source: string, heads: readonly string[], rows: readonly string[][]): string {
  const begin = `<!-- from ${source} -->`
  const [before = '', rest = ''] = page.split(begin)
  const table = [heads, heads.map(() => '---'), ...rows].map((cells) => `| ${cells.join(' | ')} |`).join('\n')
  return `${before}${begin}\n\n${table}\n\n${end}${rest.slice(rest.indexOf(end) + end.length)}`
}

function amount({ value, unit }: { readonly value: number; readonly unit?: FixedLimit['unit'] | undefined }): string {
  if (unit === 'ms')
    return value < 60_000 ? `${value / 1_000} s` : value < 3_600_000 ? minutes(value) : `${value / 3_600_000} h`
  if (unit !== 'bytes') return `${value.toLocaleString('en')}${unit === undefined ? '' : ` ${unit}`}`
  return value < 1024 * 1024 ? `${value / 1024} KiB` : `${value / 1024 / 1024} MiB`
}

const minutes = (ms: number): string => `${ms / 60_000} min`

interface BudgetText {
  readonly counts: string
  readonly isBytes?: true
  /** The bound for one session or stream. */
  readonly perOne?: string
  readonly beyond: string
}

const isUnavailable = 'HTTP 503, `OVERLOADED`'

const budgetTexts: Readonly<Record<keyof typeof fixedBudgets, BudgetText>> = {
  requests: {
    counts:
      'requests that are not answered yet, including those whose client has disconnected; each message of a batch',
    beyond: isUnavailable,
  },
  response_bytes: {
    counts: 'responses above 64 KiB that the client does not read',
    isBytes: true,
    beyond: `from three quarters on, new requests of the caller get ${isUnavailable}; at the bound, the connection that has waited longest is closed`,
  },
  stored_bytes: {
    counts: 'messages for clients that reconnect',
    isBytes: true,
    perOne: `${amount(fixedLimits.storedBytes)} per session`,
    beyond: 'the oldest are dropped',
  },
  sessions: { counts: 'sessions (legacy revisions)', beyond: `an idle session ends, otherwise ${isUnavailable}` },
  streams: { counts: 'notification streams: GET, and `subscriptions/listen`', beyond: isUnavailable },
  subscriptions: {
    counts: 'subscriptions to resources',
    perOne: `${amount(fixedLimits.sessionSubscriptions)} per session or stream`,
    beyond: '`OVERLOADED`',
  },
  questions: {
    counts: 'calls and questions that wait for input from a client',
    beyond: 'the server gets an error, `OVERLOADED`',
  },
  question_bytes: {
    counts: 'the params of calls that wait for the next request of their client (2026-07-28), and their questions',
    isBytes: true,
    beyond: 'the same',
  },
  approvals: { counts: "calls that wait for a person's [approval](../approvals.md)", beyond: '`OVERLOADED`' },
  tasks: { counts: 'tasks whose status is forwarded', beyond: 'the oldest is not forwarded any more' },
  results: {
    counts: 'whole [results](../results.md) of which callers got a part',
    beyond: 'the oldest are dropped',
  },
  result_bytes: { counts: 'their bytes', isBytes: true, beyond: 'the same' },
  chat_answers: { counts: 'chat answers in progress', beyond: isUnavailable },
  dashboards: { counts: 'open dashboards; non-admins have half of them', beyond: isUnavailable },
  model_requests: { counts: 'requests to GGUF models, running and waiting', beyond: '`OVERLOADED`' },
}
