import { provide } from './fixtures/debian.ts'
import { postgresProgram } from './fixtures/postgres.ts'

/** The programs of the machine that tests beside the code talk to. */
export default (): void => {
  // What Prometheus itself thinks of our metrics and rules is asked of its own tool.
  provide('promtool', 'prometheus')
  provide('redis-server', 'redis-server')
  provide('bwrap', 'bubblewrap')
  provide(postgresProgram(), 'postgresql')
}
