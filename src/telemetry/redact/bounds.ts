/** How much of a value is looked at and kept. Audit keeps 16 KiB of arguments, so more would be work for nothing. */
export const bounds = {
  /** Deeper than any honest argument. */
  depth: 32,
  /** Members and items of one value, all levels together. */
  nodes: 5000,
  /** Characters of a name. */
  name: 256,
  /** Characters of one text: enough to know what a file or a query was about. */
  text: 4096,
  /** The same for whoever wants to see everything: no more fits into a record. */
  fullText: 16 * 1024,
  /** Characters after the cut that are cleaned too; longer than the spelling of any usual secret. */
  beyond: 4096,
  /** Characters of all texts of one value that are looked at. */
  total: 64 * 1024,
} as const
