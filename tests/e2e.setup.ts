import { provide } from './fixtures/debian.ts'

/** What the commands in the documentation call, and what makes certificates for tests. */
export default function setup(): void {
  provide('curl', 'curl')
  provide('openssl', 'openssl')
}
