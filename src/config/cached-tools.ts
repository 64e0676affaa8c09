import type { Config } from './schema.ts'

/** What the cache keeps results of, one line for each reason; nothing where it is off. */
export function cachedTools({ cache, mcpServers }: Pick<Config, 'cache' | 'mcpServers'>): readonly string[] {
  if (!cache.enabled) return []
  const servers = Object.entries(mcpServers).filter(([, { disabled }]) => !disabled)
  return [
    ...cache.tools.map((tool) => `${tool} (cache.tools)`),
    ...servers.flatMap(([name, { readTools, trustAnnotations }]) => [
      ...readTools.map((tool) => `${name}.${tool} (mcpServers.${name}.readTools)`),
      ...(trustAnnotations ? [`tools of ${name} with readOnlyHint (mcpServers.${name}.trustAnnotations)`] : []),
    ]),
  ]
}
