/** A part of a text. */
export interface ReplacedSpan {
  readonly start: number
  readonly end: number
}

/** The text with something else in the places of the spans, which must not overlap. */
export const replaceSpans = <S extends ReplacedSpan>(
  text: string,
  spans: readonly S[],
  replacement: (part: string, span: S) => string,
): string =>
  spans
    .toSorted((a, b) => b.start - a.start)
    .reduce((rest, span) => {
      const { start, end } = span
      return rest.slice(0, start) + replacement(rest.slice(start, end), span) + rest.slice(end)
    }, text)
