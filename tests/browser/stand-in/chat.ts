import { once } from 'node:events'
import type { Chat, ChatEvent, ChatRequest } from '../../../src/core/chat.ts'
import { ToolwayError } from '../../../src/core/errors.ts'

const end = (notes: readonly string[] = []): ChatEvent => ({
  ...{ kind: 'end', reason: 'stop', handed: [], model: 'local', notes },
  usage: { promptTokens: 1_800, completionTokens: 64 },
})

const call = (id: string, name: string, server: string, given: object): ChatEvent => ({
  ...{ kind: 'call', call: id, name, server, arguments: given },
})

/** The response depends on a word in the question. */
export const sceneChat: Chat = {
  models: () => ['local', 'large'],
  visionModels: () => ['large'],
  async *answer({ messages, signal, caller, model, mode }: ChatRequest) {
    const asked = String(messages.at(-1)?.content)
    yield { kind: 'stage', stage: 'discover', round: 1 }
    yield { kind: 'stage', stage: 'execute', round: 1 }
    yield call('1', 'github__search_issues', 'github', { query: 'is:open' })
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
