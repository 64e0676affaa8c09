export type FindingKind =
  | 'hidden-character'
  | 'tag-characters'
  | 'bidi'
  | 'escape'
  | 'homoglyph'
  | 'look-alike'
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
  /** `high`: no legitimate text needs it. `warn`: it is rare in legitimate text. `info`: not flagged, only shown. */
  readonly severity: 'high' | 'warn' | 'info'
  /** The path to the text within the definition, such as `inputSchema.properties.path.description`. */
  readonly where: string
  /** A short part of the text, with invisible characters escaped. */
  readonly excerpt: string
}
