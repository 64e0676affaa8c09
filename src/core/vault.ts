/** Small secrets that are kept for later: whoever reads the disk learns nothing from them. */
export interface Vault {
  /** What was written under this key; a damaged record counts as none. */
  read(key: string): Promise<string | undefined>
  /** Never leaves half a record behind. */
  write(key: string, text: string): Promise<void>
  remove(key: string): Promise<void>
  /** Every key there is, in a stable order. */
  keys(): Promise<readonly string[]>
}
