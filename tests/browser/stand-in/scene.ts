import type { ApprovalView, AuditRow, CallView, ServerDetail, ToolDetail } from '../../../src/admin/contract.ts'
import { waitingApprovals } from './approvals.ts'
import { records } from './audit.ts'
import { manyServers, usualServers } from './servers.ts'
import { agents, manyTools, usualTools } from './tools.ts'
import { recentCalls } from './traffic.ts'

/** `busy` has 10,000 calls, `rush` also 800 new ones per second; `failing` has the data of `usual`, but every request fails. */
export type SceneName = 'usual' | 'busy' | 'rush' | 'empty' | 'crowded' | 'failing'

export interface Scene {
  readonly name: SceneName
  readonly agents: readonly string[]
  readonly servers: ServerDetail[]
  readonly tools: readonly ToolDetail[]
  readonly calls: CallView[]
  readonly approvals: ApprovalView[]
  readonly audit: readonly AuditRow[]
}

export function createScene(name: SceneName, now: number): Scene {
  if (name === 'empty') return { name, agents: [], servers: [], tools: [], calls: [], approvals: [], audit: [] }
  if (name === 'crowded') {
    const names = Array.from({ length: 12 }, (_, index) => `team.department.agent-with-a-long-name-${index}`)
    return {
      ...{ name, agents: names, servers: [...manyServers(now)], tools: manyTools },
      calls: recentCalls(now, 150).map((call) => ({
        ...call,
        server: manyServers(now)[0]?.name ?? '',
        name: manyTools[0]?.tool ?? '',
      })),
      approvals: waitingApprovals(now, 12),
      audit: records(now, 2000),
    }
  }
  return {
    ...{ name, agents, servers: [...usualServers(now)], tools: usualTools },
    ...{
      calls: recentCalls(now, name === 'busy' || name === 'rush' ? 10_000 : 40),
      approvals: waitingApprovals(now, 2),
      audit: records(now, 320),
    },
  }
}
