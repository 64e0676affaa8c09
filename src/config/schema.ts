import * as z from 'zod'
import { authSection } from './schema/auth.ts'
import { discoverySection, namingSection, scanSection } from './schema/catalog.ts'
import { chatSection, modelsSection } from './schema/chat.ts'
import { mcpServersSection } from './schema/mcp-servers.ts'
import { nativeSection, sandboxSection } from './schema/native.ts'
import { agentsSection, limitsSection, policySection } from './schema/policy.ts'
import { breakerSection, cacheSection, healthSection, retrySection } from './schema/resilience.ts'
import { defaultsSection, serverSection } from './schema/server.ts'
import { sinksSection } from './schema/sinks.ts'
import { storesSection } from './schema/stores.ts'
import { auditSection, telemetrySection } from './schema/telemetry.ts'

/** The only place for defaults; an empty document is valid. */
export const configSchema = z
  .strictObject({
    $schema: z.string().optional().describe('Address of this schema, for editors.'),
    version: z.literal(1).default(1).describe('Version of the configuration format.'),
    server: serverSection.prefault({}).describe('The HTTP endpoint.'),
    mcpServers: mcpServersSection.default({}).describe('The MCP servers behind the gateway, by name.'),
    naming: namingSection.prefault({}).describe('How served tools are named.'),
    discovery: discoverySection.prefault({}).describe('When servers are asked what they offer.'),
    agents: agentsSection
      .default({})
      .describe(
        'What each agent may use; with none at all there is one user who may use everything. team.role inherits from team.',
      ),
    defaults: defaultsSection.prefault({}).describe('What holds where nothing more particular is said.'),
    policy: policySection.prefault({}).describe('Rules that hold for every agent.'),
    auth: authSection.prefault({}).meta({ secret: 'section' }).describe('Who may come in.'),
    limits: limitsSection.prefault({}).describe('How much may happen at a time.'),
    cache: cacheSection.prefault({}).describe('Results that are kept for a while.'),
    retry: retrySection.prefault({}).describe('When a failed call is sent again.'),
    breaker: breakerSection.prefault({}).describe('When a failing server is left alone; also per server.'),
    scan: scanSection.prefault({}).describe('What is looked for in the answers of servers.'),
    health: healthSection.prefault({}).describe('How servers are checked.'),
    audit: auditSection.prefault({}).describe('The record of every call.'),
    telemetry: telemetrySection.prefault({}).describe('Log, metrics and traces.'),
    models: modelsSection.default({}).describe('Language models, by name.'),
    chat: chatSection.prefault({}).describe('The chat loop.'),
    native: nativeSection.prefault({}).describe('Tools of our own.'),
    sinks: sinksSection.default({}).describe('Named destinations for what agents produce.'),
    sandbox: sandboxSection.prefault({}).describe('Where code of agents runs.'),
    stores: storesSection.prefault({}).describe('Where state is kept.'),
  })
  .transform(({ $schema: _, ...config }) => config)

type Checked = z.output<typeof configSchema>

/** A loaded configuration: validated, with defaults; durations in milliseconds, sizes in bytes, paths absolute. */
export type Config = Checked & {
  readonly audit: { readonly path: string }
  readonly stores: {
    readonly path: string
    /** Shared by all configurations of this user; holds the token that editors were given. */
    readonly common: string
  }
}

export type HttpConfig = Config['server']
export type ServerConfig = Config['mcpServers'][string]
export type NamingConfig = Config['naming']
export type AgentConfig = Config['agents'][string]
export type PolicyConfig = Config['policy']
export type AuthConfig = Config['auth']
export type JwtConfig = NonNullable<AuthConfig['jwt']>
export type LimitsConfig = Config['limits']
export type NativeConfig = Config['native']
