import type { PageText } from '../page-text.ts'

const ways =
  'with `_meta["dev.toolway/agent"]`, the header `Toolway-Agent`, `?agent=`, `agent_id` in meta-tools, or `--agent` on the command line'

/** The caller's agent. */
export const agents = {
  INVALID_AGENT_ID: {
    happened: 'The credential may not act as that agent, or the agent does not exist',
    remedy: 'Omit the agent, or name one that the credential may use',
    causes: [
      `The caller asked to act as an agent (${ways}) that its credential does not allow. The error does not reveal whether other agents exist.`,
      'The requested agent has no rules; the message suggests similar names.',
      'The agent in `_meta` is not a string.',
    ],
    model: ['Omit `agent_id`, or use one of the names in the message.'],
    operator: [
      'The gateway token and local users may act as any agent, API keys as the agents given with `--agent`, and JSON Web Tokens as the agents in their claim (`auth.jwt.agentClaim`).',
      'Add the agent to the credential, or to `agents`.',
    ],
    keys: ['agents', 'auth.keys', 'auth.jwt.agentClaim'],
    commands: ['toolway keys create NAME --agent AGENT', 'toolway keys list'],
    related: ['NO_FALLBACK_CONFIGURED', 'FALLBACK_AGENT_NOT_IN_RULES', 'DENIED_BY_POLICY'],
  },
  FALLBACK_AGENT_NOT_IN_RULES: {
    happened: 'The default agent has no rules',
    remedy: 'Tell the operator',
    causes: [
      'No agent was named, and `defaults.agent` (or `TOOLWAY_DEFAULT_AGENT`) names one that is not in `agents`.',
      "The credential's only agent is not in `agents`.",
    ],
    model: ['Tell the user that the gateway configuration names an agent without rules.'],
    operator: [
      'Add rules for the agent that the message names, or correct `defaults.agent` or the credential.',
      '`toolway validate` warns if the default agent, or an agent that a key may act as, is not in `agents`.',
    ],
    keys: ['defaults.agent', 'agents', 'auth.keys'],
    commands: ['toolway validate', 'toolway keys list'],
    related: ['NO_FALLBACK_CONFIGURED', 'INVALID_AGENT_ID'],
  },
  NO_FALLBACK_CONFIGURED: {
    happened: 'The caller named no agent, and there is no default',
    remedy: 'Name an agent',
    causes: [
      'Agents are configured, but the caller did not name one, and its credential does not allow exactly one agent.',
      'In addition, `defaults.agent` is not set, and Toolway cannot use the agent `default` instead: either `defaults.denyOnMissingAgent` is on, or no agent with that name is configured.',
    ],
    model: ['Set `agent_id` to your agent, if you know it; otherwise tell the user.'],
    operator: [
      `Have the client name its agent (${ways}), set \`defaults.agent\`, or give the credential exactly one agent.`,
    ],
    keys: ['defaults.agent', 'defaults.denyOnMissingAgent', 'agents', 'auth.keys'],
    commands: ['toolway keys create NAME --agent AGENT'],
    related: ['FALLBACK_AGENT_NOT_IN_RULES', 'INVALID_AGENT_ID'],
  },
} as const satisfies Record<string, PageText>
