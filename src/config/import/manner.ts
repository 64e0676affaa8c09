import type { Respell } from './variables.ts'

/** What sets one client's way of writing a server apart. */
export interface Manner {
  /** What the client is called. */
  readonly label: string
  /** What a bare number under `timeout` counts; where a client does not say, a unit must be written. */
  readonly timeout?: 's' | 'ms'
  /** Puts its variables into our spelling. */
  readonly respell?: Respell
  /** The folder that its servers start in, where that is another one than the file's. */
  readonly folder?: string
  /** Whether other keys than the known ones are tolerated, with a warning: the file is the client's, not ours. */
  readonly tolerant: boolean
}

/** Keys that mean nothing outside of a client, so that nobody misses them. */
export const harmless: readonly string[] = [
  'alwaysLoad',
  'dev',
  'displayName',
  'extensionName',
  'gallery',
  'icon',
  'name',
  'remote',
  'required',
  'source',
  'supports_parallel_tool_calls',
  'supportsParallelToolCalls',
  'version',
]

/** Other names of `startTimeout`, and their units. Where several are written, the last one listed here applies. */
export const startTimeouts: ReadonlyMap<string, 's' | 'ms'> = new Map([
  ['startup_timeout_ms', 'ms'],
  ['startup_timeout_sec', 's'],
])

const approval = "has no effect: which calls ask a person is up to the client; name tools under approve for Toolway's"

/** Keys that do mean something and that we do not follow, and why. */
export const leftAside: Readonly<Record<string, string>> = {
  authProviderType: 'has no effect: write the credential under headers or auth',
  default_tools_approval_mode: approval,
  experimental_environment: 'has no effect: Toolway starts programs on its own machine',
  headersHelper: 'has no effect: Toolway runs no program for headers; write them with ${NAME} or ${file:PATH}',
  oauth_resource: 'has no effect: Toolway asks the server itself',
  sandbox: 'has no effect: the program runs without a sandbox of the editor',
  sandboxEnabled: 'has no effect: the program runs without a sandbox of the editor',
  targetAudience: 'has no effect: write the credential under headers or auth',
  targetServiceAccount: 'has no effect: write the credential under headers or auth',
}
