/** Keys below which a configuration holds secrets, or may: `*` stands for any name. */
const places = [
  'auth',
  'mcpServers.*.env',
  'mcpServers.*.headers',
  'mcpServers.*.auth',
  'mcpServers.*.args',
  'mcpServers.*.command',
  'mcpServers.*.url',
  'models.*.apiKey',
  'models.*.baseUrl',
  'sinks.*.url',
  'sinks.*.headers',
  'sinks.*.arguments',
  'stores.key',
  'stores.redis',
  'stores.postgres',
  'telemetry.traces',
].map((place) => place.split('.'))

/** Whether the values at a key may be told to whoever reads what has changed. */
export const mayTell = (path: readonly string[]): boolean =>
  !places.some((place) => place.every((part, index) => part === '*' || part === path[index]))
