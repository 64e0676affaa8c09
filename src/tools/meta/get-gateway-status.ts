import * as z from 'zod'
import { ToolwayError } from '../../core/errors.ts'
import { defineTool, type Tool } from '../define.ts'
import { withMetadata } from './list-servers.ts'
import { agentId, type MetaToolsOptions } from './options.ts'

export const getGatewayStatus = ({ access, clock, status, asAgent }: MetaToolsOptions): Tool =>
  defineTool({
    name: 'get_gateway_status',
    title: 'Gateway status',
    description:
      'Shows how the gateway itself is doing: configuration files and their last reload, policy, servers. For finding ' +
      'out why something is missing or out of date; not needed for using tools.',
    input: z.object({ agent_id: agentId }),
    readOnly: true,
    run({ agent_id }, context) {
      const caller = asAgent(context.call, agent_id)
      const visible = status(caller)
      if (!visible) {
        throw new ToolwayError(
          'DENIED_BY_POLICY',
          'The status of the gateway is not shown to this agent; the operator can show it to one with debug: true in ' +
            'its rules, or to all with defaults.debug.',
        )
      }
      const servers = access.view(caller).servers().map(withMetadata)
      return { time: new Date(clock.now()).toISOString(), ...visible, servers }
    },
  })
