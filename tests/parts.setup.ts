import { provideAll } from './fixtures/debian.ts'
import { postgresProgram } from './fixtures/postgres.ts'

/** The programs of the machine that tests beside the code talk to. */
export const parts = (): Record<string, string[]> => ({
  // What Prometheus itself thinks of our metrics and rules is asked of its own tool.
  promtool: ['prometheus'],
  'redis-server': ['redis-server'],
  bwrap: ['bubblewrap'],
  [postgresProgram()]: ['postgresql'],
})

export default (): void => provideAll(parts())
