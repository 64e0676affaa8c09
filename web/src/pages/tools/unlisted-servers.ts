import type { ServerView } from '../../../../src/serve/admin/contract.ts'

/** The names of servers whose tools are not known yet, because nothing has connected to them. */
export const unlistedServers = (servers: readonly ServerView[]): string[] =>
  servers
    .filter(({ health, reason }) => health === 'starting' || (health === 'stale' && !/using the listing/.test(reason)))
    .map(({ name }) => name)
