import type { PromptView, ResourceView } from '../../../src/admin/contract.ts'
import type { PlaygroundService } from '../../../src/admin/playground/playground.ts'
import { answerOf } from './answers.ts'

const resources: readonly ResourceView[] = [
  ...Array.from({ length: 3 }, (_, index) => ({
    ...{ uri: `toolway://filesystem/file:///srv/notes/${index}.md`, template: false, server: 'filesystem' },
    ...{ name: `Note ${index}`, description: 'A note of the project.', mimeType: 'text/markdown' },
  })),
  {
    ...{ uri: 'toolway://github/repo://{owner}/{name}', template: true, server: 'github', name: 'Repository' },
    ...{ description: 'A repository by its owner and name.', mimeType: 'application/json' },
  },
]

const prompts: readonly PromptView[] = [
  {
    ...{ name: 'github__review', server: 'github', title: 'Review', description: 'Reviews a pull request.' },
    arguments: [
      { name: 'number', description: 'The number of the pull request.', required: true },
      { name: 'tone', description: 'How to write it.', required: false },
    ],
  },
]

/** A fake playground: a tool reports progress, asks for a name, and answers with it. */
export function createScenePlayground(empty: boolean, toolOf: (name: string) => string): PlaygroundService {
  const asked = new Map<string, (answer: Parameters<PlaygroundService['playgroundAnswer']>[2]) => void>()
  let count = 0
  return {
    async playground(_, { operation, name, arguments: given, agent }, { signal, send }) {
      const answered = { call: 'call_0039', ms: 12, error: null }
      const tool = operation === 'call_tool' ? toolOf(name) : ''
      send({ kind: 'start', call: answered.call })
      if (tool === 'slow_report') {
        send({ kind: 'progress', progress: 1, total: 4, message: 'Reading the first quarter' })
        await new Promise((resolve) => signal.addEventListener('abort', resolve))
        return
      }
      if (operation === 'read_resource') {
        const result = { contents: [{ uri: name, mimeType: 'text/markdown', text: '# A note' }] }
        send({ kind: 'end', outcome: { ...answered, result } })
      } else if (operation === 'get_prompt') {
        const text = `Review ${String(given.value.number)}.`
        const result = { description: 'A review', messages: [{ role: 'user', content: { type: 'text', text } }] }
        send({ kind: 'end', outcome: { ...answered, result } })
      } else if (tool === 'ask_name') {
        const id = `ask-${++count}`
        const requestedSchema = {
          type: 'object',
          properties: { name: { type: 'string', description: 'Your name' } },
          required: ['name'],
        }
        const params = { message: 'Who are you?', requestedSchema }
        send({ kind: 'ask', id, method: 'elicitation/create', params, from: 'server' })
        const answer = await new Promise((resolve) => asked.set(id, resolve))
        const result = { content: [{ type: 'text', text: JSON.stringify(answer) }] }
        send({ kind: 'end', outcome: { ...answered, result } })
      } else send({ kind: 'end', outcome: answerOf(tool, given.value, agent) })
    },
    playgroundAnswer: (_, ask, answer) => asked.get(ask)?.(answer),
    completions: async (_, { argument }) => ({
      values: ['toolway', 'tools', 'other'].filter((value) => value.startsWith(argument.value)),
      hasMore: false,
    }),
    resources: () => ({ resources: empty ? [] : resources, total: empty ? 0 : resources.length, nextCursor: null }),
    prompts: () => ({ prompts: empty ? [] : prompts, total: empty ? 0 : prompts.length, nextCursor: null }),
  }
}
