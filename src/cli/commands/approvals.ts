import type { AnswerApproval, AnsweredApproval, ApprovalView } from '../../admin/contract.ts'
import { systemClock } from '../../core/clock.ts'
import type { GatewayAddressOptions, OptionsOf } from '../command-table.ts'
import { createOutput, type Output, type Shell, UsageError } from '../kit.ts'
import { findRunningGateway, pollNew, type RunningGateway } from '../running-gateway.ts'
import { printable, took } from '../table.ts'

/** Lists the calls that wait for a person in the running gateway (V8). */
export async function listApprovals(shell: Shell, options: OptionsOf<'approvals list'>): Promise<void> {
  const output = createOutput(shell, options.json)
  const gateway = await findRunningGateway(shell, options)
  if (options.follow) {
    const fetch = () => fetchApprovals(gateway)
    for await (const approval of pollNew(fetch, ({ id }) => id, followMs, { shell, output, clock: systemClock })) {
      if (options.json) output.value(approval)
      else print(approval, output)
    }
    return
  }
  const approvals = await fetchApprovals(gateway)
  if (options.json) output.value({ approvals })
  else if (approvals.length === 0) output.note('No calls are waiting for approval.')
  else for (const approval of approvals) print(approval, output)
}

export const allowApproval = (shell: Shell, id: string, options: OptionsOf<'approvals allow'>): Promise<void> =>
  answer(shell, id, options, { decision: options.session ? 'session' : 'once' })

export const denyApproval = (shell: Shell, id: string, options: OptionsOf<'approvals deny'>): Promise<void> =>
  answer(shell, id, options, { decision: 'deny', reason: options.reason })

const fetchApprovals = ({ get }: RunningGateway) => get<readonly ApprovalView[]>('approvals')

/** How often `--follow` asks for new approvals. */
const followMs = 1_000

/** One approval with all its arguments: a person must see what they approve. */
function print(approval: ApprovalView, { print, paint }: Output): void {
  const { id, agent, principal, server, tool, rule, until, mayAnswer } = approval
  const left = took(Math.max(0, until - systemClock.now()))
  print(`${paint('bold', id.slice(0, 8))}  ${printable(`${agent} wants to call ${server}.${tool}`)}  ${left} left`)
  for (const line of approval.arguments.split('\n')) print(`  ${printable(line)}`)
  print(paint('dim', `  by ${printable(principal)}, because of ${printable(rule)}`))
  if (!mayAnswer) print(paint('dim', '  another person must answer (approvals.by)'))
}

async function answer(shell: Shell, id: string, options: GatewayAddressOptions, given: AnswerApproval): Promise<void> {
  const output = createOutput(shell, options.json)
  const gateway = await findRunningGateway(shell, options)
  const found = (await fetchApprovals(gateway)).filter((one) => one.id.startsWith(id))
  const [approval] = found
  if (!approval || id === '') {
    const hint = 'It was answered or timed out, or its call has ended. `toolway approvals` lists what waits.'
    throw new UsageError(`No approval ${JSON.stringify(id)} is waiting.`, hint)
  }
  if (found.length > 1)
    throw new UsageError(`${found.length} approvals start with ${id}. Enter more characters of the ID.`)
  const path = `approvals/${encodeURIComponent(approval.id)}`
  const answered = (await gateway.ask(path, JSON.stringify(given))).value as AnsweredApproval
  const { server, tool, decision } = answered
  const done = { once: 'Allowed', session: 'Allowed for this session:', deny: 'Denied' }[decision]
  if (options.json) output.value(answered)
  else output.note(`${done} ${printable(`${server}.${tool}`)}.`)
}
