import { once } from 'node:events'
import type { Chat, ChatEvent, ChatRequest } from '../../../src/core/chat.ts'
import { ToolwayError } from '../../../src/core/errors.ts'

const end = (notes: readonly string[] = []): Extract<ChatEvent, { kind: 'end' }> => ({
  ...{ kind: 'end', reason: 'stop', handed: [], model: 'local', notes },
  usage: { promptTokens: 1_800, completionTokens: 64 },
})

const call = (id: string, name: string, server: string, given: object): Extract<ChatEvent, { kind: 'call' }> => ({
  ...{ kind: 'call', call: id, name, server, arguments: given },
})

/** Markdown with all that the page formats. */
const markdownAnswer = `## Open issues

| Issue | Votes |
| :-- | --: |
| Crash **at start** | 12 |
| \`a \\| b\` is cut | 3 |

1. Read [the manual](https://example.com/manual?a=1&b=2).
2. Then run:
   - this:

\`\`\`sh
toolway list --json | head -n 3
\`\`\`

> Quoted, _with_ ~~care~~. See <https://example.org/>.
`

/** What a hostile tool could make a model write. */
const hostileAnswer = [
  '[run](javascript:alert(1)) [entity](&#106;avascript:alert(1)) [tab](java\tscript:alert(1)) <javascript:alert(1)>',
  '[data](data:text/html,<script>alert(1)</script>) [file](file:///etc/passwd) [user](https://a:b@example.com/)',
  '<script>document.title = "owned"</script><img src=x onerror="document.title = \'owned\'">',
  '![pixel](https://tracker.example/pixel.png)',
  '<style>.shell { display: none }</style> <iframe src="https://example.com"></iframe>',
  `${'> '.repeat(3_000)}deep`,
  Array.from({ length: 300 }, (_, level) => `${'  '.repeat(level)}- level ${level}`).join('\n'),
  `${'*a **b '.repeat(2_000)}`,
  'w'.repeat(60_000),
  `\`\`\`\n${'c'.repeat(40_000)}\n\`\`\``,
  '\u202Egnp.exe',
].join('\n\n')

/** A table that would have 60,000 cells. */
export const hugeTable = `${'|a'.repeat(20_000)}|\n${'|-'.repeat(20_000)}|\n${'|b'.repeat(20_000)}|`

const textOf = (content: ChatRequest['messages'][number]['content'] | undefined): string =>
  typeof content === 'string'
    ? content
    : (content ?? []).map((part) => (part.type === 'text' ? part.text : `{${part.type}}`)).join(' ')

/** The response depends on a word in the question. */
export const sceneChat: Chat = {
  models: () => ['local', 'large'],
  visionModels: () => ['large'],
  async *answer({ messages, signal, caller, model, mode, only }: ChatRequest) {
    const asked = textOf(messages.at(-1)?.content)
    yield { kind: 'stage', stage: 'discover', round: 1, atMs: 0, usage: { promptTokens: 0, completionTokens: 0 } }
    for (const [word, text] of [
      ['markdown', markdownAnswer],
      ['hostile', hostileAnswer],
      ['huge', hugeTable],
      ['repeat', messages.map(({ role, content }) => `${role}: ${textOf(content)}`).join('\n\n')],
      ['which tools', only?.join(', ') ?? 'all'],
    ] as const) {
      if (!asked.includes(word)) continue
      yield { kind: 'stage', stage: 'answer', round: 1, atMs: 120, usage: { promptTokens: 900, completionTokens: 11 } }
      for (let at = 0; at < text.length; at += 10_000) yield { kind: 'text', text: text.slice(at, at + 10_000) }
      return yield { ...end(), durationMs: 1_500 }
    }
    yield { kind: 'stage', stage: 'execute', round: 1 }
    yield { ...call('1', 'github__search_issues', 'github', { query: 'is:open' }), id: 'call_0039' }
    if (asked.includes('for ever')) {
      await once(signal, 'abort')
      throw signal.reason
    }
    yield { kind: 'result', call: '1', isError: false, durationMs: 182.4, text: '12 issues' }
    yield call('2', 'filesystem__read_text_file', 'filesystem', { path: '/nowhere' })
    yield { kind: 'result', call: '2', isError: true, durationMs: 3, text: 'ENOENT: no such file' }
    yield { kind: 'thinking', text: 'Twelve, then.' }
    yield { kind: 'stage', stage: 'interpret', round: 1 }
    yield { kind: 'text', text: 'There are ' }
    if (asked.includes('break')) throw new ToolwayError('TIMEOUT', 'The model has fallen silent.')
    yield { kind: 'text', text: `12 open issues, says ${model} to ${caller.agent} (${mode ?? 'usual'}), ` }
    yield { kind: 'text', text: `after ${messages.length} messages. <b>Plainly.</b>` }
    yield end(['One tool failed.'])
  },
}
