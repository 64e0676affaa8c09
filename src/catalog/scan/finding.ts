/** What a scan can come upon. */
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

/** Something in a definition that a person should look at before a model does. */
export interface ScanFinding {
  readonly kind: FindingKind
  /** High: no honest text needs it. Low: honest texts seldom say such things. */
  readonly severity: 'high' | 'low'
  /** Which text of the definition, such as `inputSchema.properties.path.description`. */
  readonly where: string
  /** The place in question, short, and with everything invisible made visible. */
  readonly excerpt: string
}
