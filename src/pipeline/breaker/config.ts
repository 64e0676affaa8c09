import type { Config } from '../../config/schema.ts'

/** When the breaker of one server opens, and how it closes again. */
export type BreakerConfig = Config['breaker']

interface Written {
  readonly breaker: BreakerConfig
  readonly mcpServers: Readonly<Record<string, Pick<Config['mcpServers'][string], 'breaker'>>>
}

/** What holds for each server: its own words, and those of the section `breaker` where it is silent. */
export function breakerConfigs({ breaker, mcpServers }: Written): (server: string) => BreakerConfig | undefined {
  const configs = new Map(
    Object.entries(mcpServers).map(([server, own]) => [server, { ...breaker, ...own.breaker } as BreakerConfig]),
  )
  return (server) => configs.get(server)
}
