import type { ServerView } from '../../../../src/admin/contract.ts'

/** The names of servers whose tools are not known yet, because nothing has connected to them. */
export const unlistedServers = (servers: readonly ServerView[]): string[] =>
  servers
    .filter(({ health, reason }) => health === 'starting' || (health === 'stale' && !/using the listing/.test(reason)))
    .map(({ name }) => name)

const maxNames = 5

/** Names servers in a sentence: all of a few, or the first of many. */
export const someNames = (names: readonly string[]): string =>
  names.length <= maxNames + 1
    ? names.join(', ')
    : `${names.slice(0, maxNames).join(', ')} and ${names.length - maxNames} more`
