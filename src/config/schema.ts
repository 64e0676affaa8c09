import * as z from 'zod'
import { skillsSource } from '../core/source.ts'
import { chatSection, modelsSection } from './schema/chat.ts'
import { mcpServersSection } from './schema/mcp-servers.ts'
import {
  agentsSection,
  approvalsSection,
  endpointsSection,
  limitsSection,
  policySection,
  schemas,
} from './schema/policy.ts'
import { breakerSection, cacheSection, healthSection, resultsSection, retrySection } from './schema/resilience.ts'
import { authSection, defaultsSection, serverSection } from './schema/server.ts'
import {
  auditSection,
  captureSection,
  historySection,
  inboxSection,
  storesSection,
  telemetrySection,
} from './schema/telemetry.ts'
import {
  discoverySection,
  namingSection,
  nativeSection,
  registrySection,
  sandboxSection,
  scanSection,
  searchSection,
  sinksSection,
  skillsSection,
} from './schema/tools.ts'
import { textLike } from './schema/values.ts'

/** The only version. It is accepted as text too, because variables expand to strings. */
const formatVersion = z.union([z.literal(1), textLike(/^1$/, '1')], { error: '1' }).transform(() => 1 as const)

/** The configuration schema. Defaults are defined only here and in the section schemas; an empty document is valid. */
export const configSchema = z
  .strictObject({
    $schema: z.string().optional().describe('URL of this schema, for editors.'),
    version: formatVersion.prefault(1).describe('Version of the configuration format.'),
    server: serverSection.prefault({}).describe('The HTTP endpoint.'),
    mcpServers: mcpServersSection.default({}).describe('The MCP servers behind the gateway, by name.'),
    naming: namingSection.prefault({}).describe('How served tools are named.'),
    discovery: discoverySection.prefault({}).describe("When servers' tools are listed."),
    registry: registrySection
      .prefault({})
      .describe('The MCP registry that the dashboard searches, and the one that this gateway serves.'),
    agents: agentsSection
      .default({})
      .describe('What each agent may use; without agents everyone may use everything. team.role inherits from team.'),
    endpoints: endpointsSection
      .default({})
      .describe('Groups of tools, each served at its own path below server.path, such as /mcp/research.'),
    defaults: defaultsSection.prefault({}).describe('Defaults for agents and calls.'),
    schemas: schemas
      .optional()
      .describe(
        'How tool definitions are written for callers: verbatim, or portable, rewritten into what all model APIs accept. Default: portable for clients known to need it, verbatim for all others.',
      ),
    policy: policySection.prefault({}).describe('Rules for all agents.'),
    approvals: approvalsSection.prefault({}).describe("Calls that wait for a person's approval."),
    auth: authSection.prefault({}).meta({ secret: 'section' }).describe('Caller authentication.'),
    limits: limitsSection.prefault({}).describe('Rate and concurrency limits.'),
    cache: cacheSection.prefault({}).describe('The result cache.'),
    results: resultsSection.prefault({}).describe('Limits for the length of results.'),
    retry: retrySection.prefault({}).describe('Retries for failed calls.'),
    breaker: breakerSection.prefault({}).describe('Circuit breaker for failing servers; can be set per server.'),
    scan: scanSection.prefault({}).describe('Result scanning.'),
    search: searchSection.prefault({}).describe('The tool search.'),
    health: healthSection.prefault({}).describe('Health checks for servers.'),
    audit: auditSection.prefault({}).describe('The audit log of all calls.'),
    history: historySection
      .prefault({})
      .describe("The dashboard's statistics, calls and sign-ins, which survive a restart."),
    capture: captureSection
      .prefault({})
      .describe('Bounds for captured calls; mcpServers.NAME.capture and agents.NAME.capture turn capturing on.'),
    inbox: inboxSection.prefault({}).describe('Notifications about items that need a person.'),
    telemetry: telemetrySection.prefault({}).describe('Logs, metrics and traces.'),
    models: modelsSection.default({}).describe('Language models, by name.'),
    chat: chatSection.prefault({}).describe('The chat endpoint.'),
    native: nativeSection.prefault({}).describe('Built-in tools.'),
    skills: skillsSection.prefault({}).describe('Skills of this gateway, beside those of its servers.'),
    sinks: sinksSection.default({}).describe("Named destinations for agents' output."),
    sandbox: sandboxSection.prefault({}).describe('Limits for code that agents run.'),
    stores: storesSection.prefault({}).describe('Where state is stored.'),
  })
  .refine(({ skills, mcpServers }) => skills.folders.length === 0 || !Object.hasOwn(mcpServers, skillsSource), {
    path: ['mcpServers', skillsSource],
    error: 'another name for this server: with skills.folders, `skills` is the name of their skills',
  })
  .transform(({ $schema: _, ...config }) => config)

type Checked = z.output<typeof configSchema>

/** A validated configuration with defaults. Durations are in milliseconds, sizes in bytes, and paths are absolute. */
export type Config = Checked & {
  readonly audit: { readonly path: string }
  readonly stores: {
    readonly path: string
    /** Folder shared by all of this user's configurations. It contains the token that editors use. */
    readonly common: string
  }
}

export type HttpConfig = Config['server']
export type ServerConfig = Config['mcpServers'][string]
export type NamingConfig = Config['naming']
export type AgentConfig = Config['agents'][string]
export type EndpointConfig = Config['endpoints'][string]
export type PolicyConfig = Config['policy']
export type AuthConfig = Config['auth']
export type JwtConfig = NonNullable<AuthConfig['jwt']>
export type LimitsConfig = Config['limits']
export type NativeConfig = Config['native']
