import { missing, provide } from './fixtures/debian.ts'
import { buildGoServer } from './fixtures/go-server.ts'

/** What the commands in the documentation call, what makes certificates for tests, and a server built from Go. */
export default function setup(): void {
  provide('curl', 'curl')
  provide('openssl', 'openssl')
  provide('go', 'golang-go')
  // Here, because the first build compiles the standard library, which takes longer than a hook may.
  if (missing('go') === undefined) buildGoServer()
}
