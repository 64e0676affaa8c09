import type { ServerView } from '../../../../src/serve/admin/contract.ts'

/** The names of servers whose tools are not known yet, because nothing has connected to them. */
export const unlistedServers = (servers: readonly ServerView[]): string[] =>
  servers
    .filter(({ health, tools }) => (health === 'stale' || health === 'starting') && tools === 0)
    .map(({ name }) => name)
