import { loadConfig } from '../../config/load.ts'
import type { ServerConfig } from '../../config/schema.ts'
import type { ProbeFailure, ProbeResult } from '../../runtime/probe-server.ts'
import { folder } from '../folder.fixture.ts'
import type { CheckFinding } from './finding.ts'
import { serverFinding } from './servers.ts'

type Seen = Partial<Omit<ProbeResult, 'failure'>> & { readonly failure?: Partial<ProbeFailure> }

/** What is said of a server, as the configuration has it with every default, that was found to be so. */
export async function findingOf(
  written: object,
  { failure: failed, ...seen }: Seen,
  env: Readonly<Record<string, string>> = {},
): Promise<CheckFinding> {
  await using at = await folder({ 'toolway.json': { mcpServers: { it: written } } })
  const loaded = await loadConfig({ env: at.env, cwd: at.cwd })
  const config = loaded.config.mcpServers.it as ServerConfig
  const nothing = { transport: config.transport, remarks: [], stderr: [], stdout: [] }
  const failure = failed && { failure: { message: 'it ended.', timedOut: false, offersOAuth: false, ...failed } }
  const result: ProbeResult = { ...nothing, ...seen, ...failure }
  return serverFinding({ name: 'it', config, result, withinMs: 30_000, env, command: 'toolway' })
}
