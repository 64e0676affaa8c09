export type FindingKind =
  | 'hidden-character'
  | 'tag-characters'
  | 'bidi'
  | 'escape'
  | 'homoglyph'
  | 'encoded'
  | 'padding'
  | 'instruction'
  | 'secrecy'
  | 'exfiltration'
  | 'shadowing'
  | 'consent'
  | 'unscanned'

/** Something in a definition that a person should check before a model reads it. */
export interface ScanFinding {
  readonly kind: FindingKind
  /** High: no legitimate text needs it. Low: rare in legitimate texts. */
  readonly severity: 'high' | 'low'
  /** Path of the text in the definition, such as `inputSchema.properties.path.description`. */
  readonly where: string
  /** Short, with invisible characters escaped. */
  readonly excerpt: string
}
