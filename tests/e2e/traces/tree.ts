import type { Span } from '../../fixtures/otlp/read-spans.ts'

/** A trace as lines, each behind its parent: `service kind name [error]`. Whoever has lost its parent stands at the edge. */
export function treeOf(spans: readonly Span[]): string[] {
  const lines = (parent: string, depth: number): string[] =>
    spans
      .filter(({ parentId }) => parentId === parent)
      .toSorted((a, b) => (a.start === b.start ? 0 : a.start < b.start ? -1 : 1))
      .flatMap((span) => [`${'  '.repeat(depth)}${lineOf(span)}`, ...lines(span.spanId, depth + 1)])
  const known = new Set(spans.map(({ spanId }) => spanId))
  const roots = [...new Set(spans.map(({ parentId }) => parentId))].filter((id) => !known.has(id))
  return roots.flatMap((root) => lines(root, 0))
}

function lineOf({ service, kind, name, attributes }: Span): string {
  const error = attributes['error.type']
  return `${service} ${kind} ${name}${error === undefined ? '' : ` [${error}]`}`
}
