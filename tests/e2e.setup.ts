import { missing, provideAll } from './fixtures/debian.ts'
import { buildGoServer } from './fixtures/go-server.ts'

/** What the commands in the documentation call, what makes certificates for tests, and the compiler of a server. */
export const storyParts = { curl: ['curl'], openssl: ['openssl'], go: ['golang-go'] }

export default function setup(): void {
  provideAll(storyParts)
  // Here, because the first build compiles the standard library, which takes longer than a hook may.
  if (missing('go') === undefined) buildGoServer()
}
