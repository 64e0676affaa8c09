import type { Seal } from '../lib/seal.ts'

/** What a vault keeps under a name. The name hides its key, so the key stands inside. */
export interface VaultRecord {
  readonly key: string
  readonly text: string
}

/** Far above any token: whatever is larger was not written by us. */
const longest = 256 * 1024

/** Bound to its name: a record that is copied over another does not open. */
export const closeRecord = (seal: Seal, name: string, record: VaultRecord): string =>
  seal.close(JSON.stringify({ key: record.key, text: record.text }), name)

/** Undefined for what is damaged, lies under another name, or was sealed with another key. */
export function openRecord(seal: Seal, name: string, sealed: string): VaultRecord | undefined {
  const content = sealed.length > longest ? undefined : seal.open(sealed.trim(), name)
  return content === undefined ? undefined : (JSON.parse(content) as VaultRecord)
}
