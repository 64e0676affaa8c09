import { provide } from './fixtures/debian.ts'

/** What Prometheus itself thinks of our metrics and rules is asked of its own tool. */
export default (): void => provide('promtool', 'prometheus')
