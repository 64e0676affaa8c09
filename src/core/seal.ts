/** Hands something to a caller that only the same caller can hand back, unread and unchanged. */
export interface Seal {
  close(text: string, binding: string): string
  /** What was sealed under the same binding; undefined for anything else. */
  open(sealed: string, binding: string): string | undefined
}
