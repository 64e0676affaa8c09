import { describe, expect, test } from 'vitest'
import * as z from 'zod'
import type { Chat, ChatRequest } from '../core/chat.ts'
import { systemClock } from '../core/clock.ts'
import { approve } from '../pipeline/approve.ts'
import { approvalBy, interceptorOf } from '../pipeline/pipeline.fixture.ts'
import { user } from '../tools/access.fixture.ts'
import { defineTool } from '../tools/define-tool.ts'
import { chatting } from './chat.fixture.ts'
import { createChat } from './chat-builder.ts'
import { calls, ignores, says } from './models/server.fixture.ts'

/** The library over a chat, and what it asked of it. */
function library(chat: Chat) {
  const requests: ChatRequest[] = []
  const noted: Chat = {
    models: () => chat.models(),
    visionModels: () => chat.visionModels(),
    answer: (request) => {
      requests.push(request)
      return chat.answer(request)
    },
  }
  const localAs = (agent = 'default') => ({ ...user, agent })
  return { requests, ask: createChat({ chat: noted, localAs }) }
}

const rome = calls({ name: 'weather__forecast', arguments: { city: 'Rome' } })

describe('the fluent builder', () => {
  test('S6: a complete answer with its tool calls', async () => {
    const { chat } = await chatting([rome, says('Sunny.')])
    expect(await library(chat).ask.withMode('agent').ask('How is Rome?')).toEqual({
      text: 'Sunny.',
      reason: 'stop',
      handed: [],
      notes: [],
      model: 'local',
      durationMs: 0,
      usage: { promptTokens: 14, completionTokens: 6 },
      calls: [
        {
          id: expect.any(String),
          name: 'weather__forecast',
          server: 'weather',
          arguments: { city: 'Rome' },
          isError: false,
          durationMs: 0,
          text: 'Rome: sunny, 21 degrees',
        },
      ],
    })
  })

  test('S6: every choice reaches the loop', async () => {
    const { chat } = await chatting([says('Well.')])
    const { requests, ask } = library(chat)
    await ask
      .withModel('local')
      .withMode('agent')
      .withTools('weather.*', 'native.*')
      .withSystem('Be brief.')
      .withMaxSteps(3)
      .withCodeExecution({ environment: 'desk' })
      .asAgent('researcher')
      .ask([{ role: 'user', content: 'Hello' }])
    expect(requests).toMatchObject([
      {
        model: 'local',
        mode: 'agent',
        only: ['weather.*', 'native.*'],
        maxSteps: 3,
        codeExecution: { environment: 'desk' },
        caller: { agent: 'researcher' },
        stream: false,
        messages: [
          { role: 'system', content: 'Be brief.' },
          { role: 'user', content: 'Hello' },
        ],
      },
    ])
  })

  test('S6: builders are immutable', async () => {
    const { chat } = await chatting([says('Well.')])
    const { requests, ask } = library(chat)
    const agent = ask.withMode('agent')
    agent.withTools('weather.*').withCodeExecution()
    await agent.ask('Hello')
    expect(requests[0]).not.toHaveProperty('only')
    expect(requests[0]).not.toHaveProperty('codeExecution')
    expect(requests[0]).not.toHaveProperty('system')
  })

  test('S7: createChat(…).withCodeExecution().ask(…)', async () => {
    const code = defineTool({
      name: 'execute_code',
      description: 'Runs code.',
      input: z.looseObject({ code: z.string() }),
      run: ({ code: text, environment }) => `${text} in ${environment}`,
    })
    const servers = { native: [code] }
    const run = calls({ name: 'execute_code', arguments: { code: '6 * 7' } })
    const { chat } = await chatting([run, says('42')], { servers, config: { mode: 'agent' } })
    const { text, calls: made } = await library(chat).ask.withCodeExecution().ask('What is 6 * 7?')
    expect([text, made[0]?.text]).toEqual(['42', '6 * 7 in scratch'])
  })

  test('S6: streams an answer and stops when its reader stops', async () => {
    const { chat, server } = await chatting([says('One two three.')], { config: { mode: 'agent' } })
    const pieces: string[] = []
    for await (const event of library(chat).ask.stream('Count')) if (event.kind === 'text') pieces.push(event.text)
    expect(pieces.length).toBeGreaterThan(1)
    expect(pieces.join('')).toBe('One two three.')
    expect(server.asked[0]?.body.stream).toBe(true)
  })

  test('S6: it can be cancelled', async () => {
    const { chat, server } = await chatting([ignores])
    const controller = new AbortController()
    const answer = library(chat).ask.ask('Hello', { signal: controller.signal })
    const asked = await server.request(1)
    controller.abort()
    await expect(answer).rejects.toMatchObject({ code: 'CANCELLED' })
    await asked.abandoned
  })

  test.each([true, false])('J5: a function says yes or no (%s) to what needs it', async (isAllowed) => {
    const questions: string[] = []
    const { chat } = await chatting([rome, says('Well.')], {
      config: { mode: 'agent', approve: ['*'] },
      interceptors: [interceptorOf(approve(approvalBy(undefined), systemClock))],
    })
    const { calls: made } = await library(chat)
      .ask.withApproval((question) => {
        questions.push(question)
        return isAllowed
      })
      .ask('How is Rome?')
    expect(questions).toEqual([expect.stringContaining('wants to call weather.forecast with {"city":"Rome"}')])
    expect(made[0]?.isError).toBe(!isAllowed)
  })
})
