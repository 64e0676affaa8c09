import type { Definition } from './entry.ts'

/** What a server said about itself and offers; remembered between runs so that a list never waits for a server. */
export interface Descriptors {
  /** When the server said so, in milliseconds since the epoch. */
  readonly fetchedAt: number
  readonly era: 'legacy' | 'modern'
  readonly protocolVersion: string
  readonly serverInfo: Readonly<Record<string, unknown>>
  readonly capabilities: Readonly<Record<string, unknown>>
  readonly instructions?: string
  readonly tools: readonly Definition[]
  readonly resources: readonly Definition[]
  readonly templates: readonly Definition[]
  readonly prompts: readonly Definition[]
  /** Input schemas that hold numbers which a double cannot, by the name of the tool, as JSON with all digits. */
  readonly exactSchemas?: Readonly<Record<string, string>> | undefined
}

export interface DescriptorStore {
  /** What was saved for this server under the same fingerprint of its configuration; a damaged record counts as none. */
  load(server: string, fingerprint: string): Promise<Descriptors | undefined>
  /** Never leaves half a record behind. */
  save(server: string, fingerprint: string, descriptors: Descriptors): Promise<void>
}
