import { createRedactor } from '../../audit/redact/redactor.ts'
import { secretsOf } from '../../audit/redact/secrets.ts'
import { scanDefinition } from '../../catalog/scan/scan.ts'
import type { ServerConfig } from '../../config/schema.ts'
import { secretSettings } from '../../config/schema-lookup.ts'
import type { Definition } from '../../core/entry.ts'
import { tokensOf } from '../../core/tokens.ts'
import type { OAuth } from '../../runtime/oauth-sign-in.ts'
import { createServerProber, type ProbeResult } from '../../runtime/probe-server.ts'
import type { AdminContext } from '../context.ts'
import type { ServerTest } from '../contract.ts'
import type { Proposal } from './config-editor.ts'

const testMs = 30_000
const maxShownItems = 500

/** Starts each of these servers, which need not be in the configuration yet, once. No process is left behind. */
export async function testServers(
  { current, oauth, clock, log }: AdminContext,
  loaded: NonNullable<Proposal['loaded']>,
  names: readonly string[],
  signal: AbortSignal,
): Promise<ServerTest[]> {
  const { config } = loaded
  const secrets = secretsOf(config, secretSettings(config), loaded.secrets)
  const known = createRedactor({ secrets, keys: config.audit.redact })
  const redact = (text: string) => current().redactor.text(known.text(text))
  // Only a server that is already in the configuration can have a token; testing others stores nothing.
  const saved = current().loaded.config.mcpServers
  const authorize: OAuth['authorize'] = (name, tested, principal) =>
    urlOf(saved[name]) === urlOf(tested) ? oauth.authorize(name, tested, principal) : undefined
  await using prober = createServerProber({ redact, oauth: { authorize }, limits: config.discovery, clock, log })
  const results: ServerTest[] = []
  for (const name of names) {
    const tested = config.mcpServers[name] as ServerConfig
    const found = await prober.probe(name, tested, testMs, signal)
    results.push(testView(name, found, tested, redact))
  }
  return results
}

const urlOf = (config: ServerConfig | undefined): string | undefined =>
  config && config.transport !== 'stdio' ? config.url : undefined

/** Whether a tested server only requires a sign-in, and whether its definition has to be changed for that. */
function signInOf({ failure }: ProbeResult, tested: ServerConfig) {
  if (!failure || tested.transport === 'stdio') return { needsSignIn: false, lacksOAuth: false }
  const { auth, headers } = tested
  const hasCredential =
    auth !== undefined || Object.keys(headers).some((name) => name.toLowerCase() === 'authorization')
  const usesOAuth = auth?.type === 'oauth' && auth.grant !== 'client_credentials'
  const lacksOAuth = failure.offersOAuth && !hasCredential
  return {
    needsSignIn: lacksOAuth || failure.signIn !== undefined || (usesOAuth && failure.status === 401),
    lacksOAuth,
  }
}

function testView(
  name: string,
  found: ProbeResult,
  tested: ServerConfig,
  redact: (text: string) => string,
): ServerTest {
  const { tools = [], resources = [], templates = [], prompts = [] } = found.lists ?? {}
  const all: readonly Definition[] = [...tools, ...resources, ...templates, ...prompts]
  const own = tools.map((tool) => ({
    name: redact(String(tool.name)),
    description: redact(String(tool.description ?? '')).slice(0, 1_000),
    tokens: tokensOf(String(tool.name), tool),
  }))
  const addressOf = (one: Definition) => redact(String(one.uri ?? one.uriTemplate ?? one.name))
  return {
    name,
    ok: found.failure === undefined,
    error: found.failure?.message ?? null,
    ...signInOf(found, tested),
    transport: found.transport,
    protocolVersion: found.protocolVersion ?? null,
    reports: found.calls ?? null,
    startMs: found.startMs ?? null,
    tools: own.slice(0, maxShownItems),
    tokens: own.reduce((sum, { tokens }) => sum + tokens, 0),
    prompts: prompts.slice(0, maxShownItems).map((prompt) => redact(String(prompt.name))),
    resources: [...resources, ...templates].slice(0, maxShownItems).map(addressOf),
    findings: all
      .slice(0, 2_000)
      .flatMap((definition) =>
        scanDefinition(definition).map(({ kind, severity, where, excerpt }) => ({
          ...{ item: redact(String(definition.name)), kind, severity, where },
          excerpt: redact(excerpt),
        })),
      )
      .slice(0, 100),
    remarks: [...found.remarks, ...(found.findings ?? []).map(({ message }) => message)].map(redact),
    stderr: found.stderr.slice(-50).map(redact),
  }
}
