import { describe, expect, test } from 'vitest'
import * as z from 'zod'
import { Json } from '../json/json.ts'
import { approve } from '../pipeline/approve.ts'
import { approvalBy, interceptorOf } from '../pipeline/pipeline.fixture.ts'
import { mutePeer, user } from '../tools/access.fixture.ts'
import { defineTool } from '../tools/define-tool.ts'
import { add, ask, chatting, forecast } from './chat.fixture.ts'
import { calls, says } from './models/server.fixture.ts'

const rome = calls({ name: 'weather__forecast', arguments: { city: 'Rome' } })

describe('J5: approval', () => {
  const write = defineTool({
    name: 'write',
    description: 'Writes.',
    input: z.object({}),
    run: () => 'written',
  })
  const asking = async (pattern: string, answer?: object) => {
    const asked: string[] = []
    const { chat, server, gateway } = await chatting([calls({ name: 'write', arguments: {} }), says('Well.')], {
      config: { mode: 'agent', approve: [pattern] },
      servers: { files: [write], weather: [forecast], arithmetic: [add] },
      interceptors: [
        interceptorOf(
          approve(approvalBy(undefined), {
            now: () => 0,
            monotonic: () => 0,
            after: () => ({ [Symbol.dispose]() {} }),
          }),
        ),
      ],
    })
    await ask(chat, 'x', {
      ...(answer && {
        caller: { ...user, capabilities: { elicitation: {} } },
        peer: {
          ...mutePeer,
          ask: async (_method: string, params: Json) => {
            asked.push((params.value as { message: string }).message)
            return Json.of(answer)
          },
        },
      }),
    })
    return { asked, result: server.asked[1]?.body.messages.at(-1)?.content, rule: gateway.calls[0]?.approval }
  }

  test.each(['files.write', 'files.*', 'writes', '*'])('by the pattern %s', async (pattern) => {
    const { asked, result, rule } = await asking(pattern, { action: 'accept', content: { approve: true } })
    expect(asked).toEqual(['The agent default wants to call files.write with {}. Allow this once?'])
    expect([result, rule]).toEqual(['written', 'chat.approve[0]'])
  })

  test('is required: a call is refused if it is declined or the client cannot be asked', async () => {
    expect((await asking('writes', { action: 'decline' })).result).toMatch(/^Error: files\.write .* declined/)
    expect((await asking('writes')).result).toMatch(/^Error: files\.write .* elicitation/)
  })

  test('is not needed for read-only tools or without a matching pattern', async () => {
    const { chat, gateway } = await chatting([rome, says('Well.')], {
      config: { mode: 'agent', approve: ['writes', 'files.*'] },
    })
    await ask(chat, 'x')
    expect(gateway.calls[0]!.approval).toBeUndefined()
  })
})
