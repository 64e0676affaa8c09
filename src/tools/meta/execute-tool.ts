import * as z from 'zod'
import { defineTool, type Tool } from '../define.ts'
import { askedFields, carrierTimeoutMs, carry, timeoutMs } from './carry.ts'
import { agentId, type MetaToolsOptions } from './options.ts'

export const executeTool = ({ access, asAgent }: MetaToolsOptions): Tool =>
  defineTool({
    name: 'execute_tool',
    title: 'Execute a tool',
    description:
      'Runs one tool of one server and gives its own result, unchanged. Its arguments are described by the inputSchema ' +
      'from get_server_tools or find_tool(detail: "full"). For several calls at once use execute_tools.',
    input: z.object({
      agent_id: agentId,
      ...askedFields,
      timeout_ms: timeoutMs.describe('Give up after this many milliseconds.'),
    }),
    timeoutMs: carrierTimeoutMs,
    carries: true,
    run: ({ agent_id, timeout_ms, server, tool }, { call }) =>
      carry(
        access,
        call,
        { server, tool, args: call.input.arguments.member('args') },
        {
          caller: asAgent(call, agent_id),
          timeoutMs: timeout_ms,
          meta: call.input.meta,
          rest: call.input.rest,
        },
      ),
  })
