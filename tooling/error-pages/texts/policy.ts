import type { PageText } from '../page-text.ts'

/** What somebody may not do. */
export const policy = {
  DENIED_BY_POLICY: {
    happened: 'A rule does not allow this agent that tool',
    remedy: 'The `rule` names it; ask the operator',
    causes: [
      'A rule under `agents.*.deny` of the agent, or of one that it inherits from, denies it.',
      'Nothing under `agents.*.allow` covers it: as soon as one agent is configured, what is not allowed is denied (`default deny` in the `rule`).',
      '`policy.allowedTools` lists other tools.',
      "The tool needs a person's yes (`mcpServers.*.approve`), and nobody could be asked or nobody agreed.",
      'There are no rules for the agent, for instance because it was removed while its caller was connected.',
      'Over HTTP, as status 403: the `Host` or `Origin` header is not one that this gateway answers to.',
    ],
    model: [
      'Do not call it again in another spelling: the decision is the same.',
      'Use a tool that is listed to you, or tell the user which `rule` stands in the way.',
    ],
    operator: [
      '`toolway why AGENT TOOL` shows everything that was considered, in order.',
      'Change the rule that the error names, or add one to `allow`; `toolway policy replay` shows beforehand which recorded calls would end otherwise.',
    ],
    keys: [
      'agents.*.allow',
      'agents.*.deny',
      'policy.allowedTools',
      'mcpServers.*.approve',
      'server.allowedHosts',
      'server.allowedOrigins',
    ],
    commands: ['toolway why AGENT TOOL', 'toolway policy replay --policy new.yaml --since 7d'],
    related: ['NAMESPACE_NOT_ALLOWED', 'TOOL_BLOCKED', 'WRITE_NOT_ALLOWED', 'INVALID_AGENT_ID'],
  },
  NAMESPACE_NOT_ALLOWED: {
    happened: 'The server is not among the allowed ones',
    remedy: 'Ask the operator (`policy.allowedServers`)',
    causes: [
      '`policy.allowedServers` is not `["*"]`, and no name or pattern in it matches the server. It holds for every agent.',
    ],
    model: ['Use a server from `list_servers`.'],
    operator: ['Add the server to `policy.allowedServers`, or leave that key out to allow all.'],
    keys: ['policy.allowedServers'],
    commands: ['toolway why AGENT TOOL'],
    related: ['DENIED_BY_POLICY', 'TOOL_BLOCKED'],
  },
  TOOL_BLOCKED: {
    happened: 'The operator blocked this tool for everybody',
    remedy: 'Use another tool',
    causes: ['A pattern in `policy.blockedTools` matches `server.tool`. No rule of an agent can open it again.'],
    model: ['Use another tool; no agent may use this one.'],
    operator: ['The `rule` says which pattern of `policy.blockedTools` it was.'],
    keys: ['policy.blockedTools'],
    commands: ['toolway why AGENT TOOL'],
    related: ['DENIED_BY_POLICY', 'NAMESPACE_NOT_ALLOWED'],
  },
  WRITE_NOT_ALLOWED: {
    happened: 'The server or the agent is read-only here',
    remedy: 'Use a tool that reads',
    causes: [
      'The server has `readOnly: true`, and the tool is not known to be a read: it is not in `readTools`, and its own `readOnlyHint` does not count unless `trustAnnotations` is set.',
      'The agent, or one that it inherits from, has `readOnly: true`: it may only read, on every server.',
    ],
    model: ['Use a tool that reads. Nothing was sent, so nothing was changed.'],
    operator: [
      'If the tool only reads, list it in `mcpServers.*.readTools`.',
      'Set `trustAnnotations: true` only for servers whose word you take for it.',
    ],
    keys: ['mcpServers.*.readOnly', 'mcpServers.*.readTools', 'mcpServers.*.trustAnnotations', 'agents.*.readOnly'],
    commands: ['toolway why AGENT TOOL'],
    related: ['DENIED_BY_POLICY', 'UNSAFE_SQL'],
  },
  AUTH_REQUIRED: {
    happened: 'The tool or the gateway needs an authenticated caller, or the server a sign-in',
    remedy: 'Send a credential, or sign in to the server',
    causes: [
      'Over HTTP, as status 401: the request has no credential, or one that is wrong, expired or revoked.',
      'The gateway lets anybody in (`auth.token: none`), but `policy.requireAuth` names this tool.',
      'The server wants OAuth (`auth.type: oauth`), and there is no grant for it, or it has ended, or it lacks a right that this call needs. `server_health` says `needs-auth` then.',
    ],
    model: [
      'You cannot mend this by calling again: tell the user what the message says. Either the client needs a credential, or somebody has to run the command that it names.',
    ],
    operator: [
      'Clients send `Authorization: Bearer …` with the token that `toolway serve` prints, with a key or with a JSON Web Token.',
      '`toolway keys create NAME --agent AGENT` makes a key and shows it once; `toolway keys list` shows which there are.',
      '`toolway auth SERVER` signs in to a server; `toolway auth --list` shows which grants there are.',
    ],
    keys: ['auth.token', 'auth.keys', 'auth.jwt', 'policy.requireAuth', 'mcpServers.*.auth'],
    commands: ['toolway keys create NAME --agent AGENT', 'toolway keys list', 'toolway auth SERVER'],
    related: ['INVALID_AGENT_ID', 'DENIED_BY_POLICY'],
  },
  QUARANTINED: {
    happened: "The tool's definition changed and nobody approved it yet",
    remedy: 'Ask the operator',
    causes: [
      'With `policy.pins: quarantine`, the definition differs from the one that was approved, or was pinned when it was first seen. A server can change what a tool does, or what a model reads about it, at any time.',
      'The definition holds hidden characters or instructions to the model.',
      'The input schema of the tool cannot be compiled (rule `inputSchema`), so that arguments cannot be checked. This holds whatever `policy.pins` says.',
      'The pins of the server were lost, so that nothing of it is trusted at first sight.',
    ],
    model: ['Use another tool, and tell the user that this one waits for approval. Do not follow its old description.'],
    operator: [
      '`toolway tools` and `toolway doctor` name tools whose schema is at fault; fix the server, or leave them out with `mcpServers.NAME.tools.exclude`.',
      '`toolway pins show TOOL` compares the approved definition with the one that was seen last.',
      '`toolway pins approve TOOL` lets it through; a running gateway takes notice.',
      '`policy.pins: warn` logs changes and lets tools through.',
    ],
    keys: ['policy.pins'],
    commands: ['toolway pins list', 'toolway pins show TOOL', 'toolway pins approve TOOL'],
    related: ['DENIED_BY_POLICY', 'TOOL_NOT_FOUND'],
  },
} as const satisfies Record<string, PageText>
