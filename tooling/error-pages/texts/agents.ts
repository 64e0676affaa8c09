import type { PageText } from '../page-text.ts'

const ways =
  'by `_meta["dev.toolway/agent"]`, the header `Toolway-Agent`, `?agent=`, `agent_id` in meta-tools, or `--agent` on the command line'

/** Who somebody is. */
export const agents = {
  INVALID_AGENT_ID: {
    happened: 'The credential may not act as that agent, or there is no such agent',
    remedy: 'Leave the agent out, or name one of yours',
    causes: [
      `The caller asked to act as an agent (${ways}) that its credential does not name. Nothing is said about agents of others, not even whether they exist.`,
      'There are no rules for the agent that was asked for; the message suggests what comes near.',
      'The agent in `_meta` is not text.',
    ],
    model: ['Leave `agent_id` out, or use one of the names in the message.'],
    operator: [
      'The token and local users may act as any agent; keys as those given with `--agent`; JSON Web Tokens as those in their claim (`auth.jwt.agentClaim`).',
      'Add the agent to the credential, or to `agents`.',
    ],
    keys: ['agents', 'auth.keys', 'auth.jwt.agentClaim'],
    commands: ['toolway keys create NAME --agent AGENT', 'toolway keys list'],
    related: ['NO_FALLBACK_CONFIGURED', 'FALLBACK_AGENT_NOT_IN_RULES', 'DENIED_BY_POLICY'],
  },
  FALLBACK_AGENT_NOT_IN_RULES: {
    happened: 'The agent to fall back on has no rules',
    remedy: 'Tell the operator',
    causes: [
      'No agent was named, and `defaults.agent` (or `TOOLWAY_DEFAULT_AGENT`) names one that is not in `agents`.',
      'The only agent of the credential is not in `agents`.',
    ],
    model: ['Tell the user that the configuration of the gateway names an agent without rules.'],
    operator: [
      'Add rules for the agent that the message names, or correct `defaults.agent` or the credential.',
      '`toolway validate` warns of both.',
    ],
    keys: ['defaults.agent', 'agents', 'auth.keys'],
    commands: ['toolway validate', 'toolway keys list'],
    related: ['NO_FALLBACK_CONFIGURED', 'INVALID_AGENT_ID'],
  },
  NO_FALLBACK_CONFIGURED: {
    happened: 'No agent was named and there is no default',
    remedy: 'Name an agent',
    causes: [
      'There are agents, the caller named none, and its credential may be none of them or several.',
      '`defaults.agent` is not set, and callers without an agent are refused (`defaults.denyOnMissingAgent`), or there are no rules for an agent `default`.',
    ],
    model: ['Name the agent that you act as with `agent_id`, if you know it; otherwise tell the user.'],
    operator: [
      `Let the client name its agent ${ways}; or set \`defaults.agent\`; or give the credential exactly one agent.`,
    ],
    keys: ['defaults.agent', 'defaults.denyOnMissingAgent', 'agents', 'auth.keys'],
    commands: ['toolway keys create NAME --agent AGENT'],
    related: ['FALLBACK_AGENT_NOT_IN_RULES', 'INVALID_AGENT_ID'],
  },
} as const satisfies Record<string, PageText>
