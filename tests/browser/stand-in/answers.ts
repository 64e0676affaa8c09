import type { TryResult } from '../../../src/admin/contract.ts'

const picture =
  'iVBORw0KGgoAAAANSUhEUgAAAEAAAABACAIAAAAlC+aJAAAAWElEQVR42u3PMQ0AAAgDsPk3jQYEcNGkDpqus1YBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBgW8DkA8AARJ3uQ4AAAAASUVORK5CYII='

const content = (...blocks: object[]) => ({ content: blocks })

/** Results of the tools of a scene. */
export function answerOf(tool: string, given: Readonly<Record<string, unknown>>, agent: string | undefined): TryResult {
  const answered = { call: 'call_0039', ms: 182.4, error: null }
  if (agent === 'researcher.junior') {
    const error = {
      code: 'DENIED_BY_POLICY',
      message: 'The agent researcher.junior may not use this tool. Use another one, or ask whoever runs this gateway.',
      rule: 'agents.researcher.junior.deny.servers[0]',
    }
    return { call: 'call_0040', ms: 0.2, result: null, error }
  }
  switch (tool) {
    case 'screenshot':
      return { ...answered, result: content({ type: 'image', data: picture, mimeType: 'image/png' }) }
    case 'search_issues': {
      const structured = {
        total: 2,
        items: [
          { number: 12, title: 'Names change', url: 'https://example.com/12' },
          { number: 15, title: 'Slow start', url: 'https://example.com/15' },
        ],
      }
      return {
        ...answered,
        result: { ...content({ type: 'text', text: JSON.stringify(structured) }), structuredContent: structured },
      }
    }
    case 'read_text_file': {
      const text = `ENOENT: no such file or directory, open '${String(given.path)}'`
      return { ...answered, result: { ...content({ type: 'text', text }), isError: true } }
    }
    case 'query': {
      const text = 'The statement is not read-only: it has an UPDATE in it. Send a single SELECT.'
      const meta = { 'dev.toolway/error': { code: 'UNSAFE_SQL', rule: 'mcpServers.postgres.guards[0]' } }
      return { ...answered, result: { ...content({ type: 'text', text }), isError: true, _meta: meta } }
    }
    case 'create_issue':
      if (typeof given.count === 'number' && given.count > 100) {
        const text = 'Invalid arguments for github.create_issue: "count" must be at most 100.'
        const meta = { 'dev.toolway/error': { code: 'INVALID_ARGUMENTS' } }
        return { ...answered, result: { ...content({ type: 'text', text }), isError: true, _meta: meta } }
      }
      return { ...answered, result: content({ type: 'text', text: `Done: ${JSON.stringify(given)}` }) }
    default:
      return { ...answered, result: content({ type: 'text', text: `Done: ${JSON.stringify(given)}` }) }
  }
}
