import type { Artifact } from './sink.ts'

const blank = /\{(content|agent|timestamp|date|id|sink|metadata\.([A-Za-z0-9_-]{1,64}))\}/g
const only = new RegExp(`^(?:${blank.source})$`)

/** Fills the blanks of a template, all in one pass: what is filled in is never read as a template. */
export const fill = (
  template: string,
  artifact: Artifact,
  form: (value: string) => string = (value) => value,
): string => template.replace(blank, (_, name: string, key?: string) => form(textOf(standsFor(artifact, name, key))))

/** The same in every text of a value. A text that is one blank and nothing else becomes what it stands for, as it is. */
export function fillAll(value: unknown, artifact: Artifact): unknown {
  if (Array.isArray(value)) return value.map((inner) => fillAll(inner, artifact))
  if (typeof value === 'object' && value !== null) {
    return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, fillAll(inner, artifact)]))
  }
  if (typeof value !== 'string') return value
  const [whole, name, key] = only.exec(value) ?? []
  return whole === undefined ? fill(value, artifact) : (standsFor(artifact, name as string, key) ?? '')
}

function standsFor(artifact: Artifact, name: string, key: string | undefined): unknown {
  const { content, agent, timestamp, id, sink, metadata } = artifact
  if (key !== undefined) return Object.hasOwn(metadata, key) ? metadata[key] : undefined
  return { content, agent, timestamp, id, sink, date: timestamp.slice(0, 10) }[name]
}

function textOf(value: unknown): string {
  if (value === undefined || value === null) return ''
  return typeof value === 'object' ? JSON.stringify(value) : String(value)
}
