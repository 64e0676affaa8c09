import { expect, test } from 'vitest'
import type { Access } from '../../core/access.ts'
import { callOf, entryOf } from '../../core/call.fixture.ts'
import type { AdminContext } from '../context.ts'
import type { VisibleFigures } from '../overview/figures.ts'
import { createToolsAdmin } from './tools.ts'

test('F11: looking up a tool that the policy denies leaves a record with the principal', async () => {
  const recorded: unknown[] = []
  const denial = { allowed: false, code: 'TOOL_BLOCKED', rule: 'policy.blockedTools[0]', reason: 'No.' }
  const access: Pick<Access, 'rejected'> & { view: () => object } = {
    rejected: (who) => recorded.push(who),
    view: () => ({ resolve: async () => ({ entry: entryOf() }) }),
  }
  const current = () => ({ policy: { decide: () => denial } })
  const admin = createToolsAdmin({ access, current } as unknown as AdminContext, {} as VisibleFigures)
  const { caller } = callOf()
  await expect(admin.tool(caller, 'files.read')).rejects.toMatchObject({ code: 'TOOL_BLOCKED' })
  expect(recorded).toEqual([
    { code: 'TOOL_BLOCKED', principal: 'test', address: undefined, asked: 'default', detail: 'tool: files.read' },
  ])
})
