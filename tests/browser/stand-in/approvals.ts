import type { ApprovalView } from '../../../src/admin/contract.ts'

const path = '/srv/notes/\\u{202e}2027.md'
const text = 'A long line. '.repeat(40)

/** Calls that wait for a person. The last one was made with the user's own credential. */
export const waitingApprovals = (now: number, count: number): ApprovalView[] =>
  Array.from({ length: count }, (_, index) => ({
    id: `approval-${index}`,
    call: `call_9${index}`,
    agent: index === 0 ? 'researcher' : 'team.department.agent-with-a-long-name',
    principal: index === 0 ? 'key:reader' : 'operator',
    session: '4f1c09ab',
    server: 'filesystem',
    tool: index === 0 ? 'write_file' : 'a_tool_with_a_name_that_does_not_fit_into_one_line_of_a_small_screen',
    arguments: JSON.stringify({ path, content: text, mode: index }, undefined, 2),
    rule: index === 0 ? 'agents.researcher.approve[0]' : 'mcpServers.filesystem.approve[2]',
    askedAt: now - 12_000,
    until: now + 3_600_000,
    mayAnswer: index < Math.max(1, count - 1),
  }))
