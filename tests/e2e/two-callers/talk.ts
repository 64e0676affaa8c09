import { expect } from 'vitest'
import { able, type CallerKind, connectCaller, type Params, type StoryCaller } from '../../fixtures/callers.ts'
import { heardIn } from '../../fixtures/conversation/turns.ts'
import type { Endpoint } from '../../fixtures/toolway.ts'

/** A caller of the talking tool that keeps what it was asked. */
export interface Talker extends AsyncDisposable {
  readonly name: string
  readonly caller: StoryCaller
  readonly asked: string[]
}

/** Where all callers wait for one another, so that their calls are surely under way at once. */
interface Meeting {
  arrive(): Promise<void>
}

/** Everybody waits until so many have arrived; then they go on, and may meet again. */
function createMeeting(size: number): Meeting {
  let waiting: (() => void)[] = []
  return {
    arrive: () =>
      new Promise((resolve) => {
        waiting.push(resolve)
        if (waiting.length < size) return
        for (const goOn of waiting) goOn()
        waiting = []
      }),
  }
}

interface TalkerOptions {
  readonly name: string
  readonly kind: CallerKind
  readonly meeting: Meeting
}

/** All of them bear the same name to the outside: two windows of one program are two callers. */
async function connectTalker(endpoint: Endpoint, { name, kind, meeting }: TalkerOptions): Promise<Talker> {
  const asked: string[] = []
  const caller = await connectCaller(kind, endpoint, {
    capabilities: able,
    async answer(method, params) {
      const words = wordsOf(params)
      asked.push(`${method} ${words}`)
      if (method === 'elicitation/create') {
        await meeting.arrive()
        return { action: 'accept', content: { said: `${name} says ${words}` } }
      }
      const content = { type: 'text', text: `the model of ${name} says ${words}` }
      return { role: 'assistant', model: 'm', stopReason: 'endTurn', content }
    },
  })
  await caller.setLevel('debug')
  return { name, caller, asked, [Symbol.asyncDispose]: () => caller[Symbol.asyncDispose]() }
}

function wordsOf({ message, messages }: Params): unknown {
  if (message !== undefined) return message
  const [first] = messages as { content: { text: string } | { text: string }[] }[]
  return [first?.content].flat()[0]?.text
}

/** One conversation; says what its caller was told and asked on the way, in the order of each kind. */
async function talk({ name, caller, asked }: Talker, tool: string, marker: string) {
  const before = { heard: caller.heard.length, asked: asked.length }
  const { content } = await caller.call(tool, { marker }, { progress: true })
  const heard = caller.heard.slice(before.heard)
  const of = (method: string) => heard.filter((one) => one.method === method)
  return {
    progress: of('notifications/progress').map(({ params }) => params.message),
    logged: of('notifications/message').map(({ params }) => params.data),
    asked: asked.slice(before.asked),
    answers: JSON.parse((content as [{ text: string }])[0].text),
    name,
  }
}

/** So many callers, who meet in each of their conversations. */
export async function connectTalkers(
  endpoint: Endpoint,
  kinds: readonly CallerKind[],
  open: AsyncDisposableStack,
): Promise<Talker[]> {
  const meeting = createMeeting(kinds.length)
  const talkers = kinds.map((kind, index) => connectTalker(endpoint, { name: `${kind}-${index}`, kind, meeting }))
  return Promise.all(talkers.map(async (talker) => open.use(await talker)))
}

/** All of them at once: each must hear and be asked what is its own, all of it and nothing else. */
export async function converseAll(talkers: readonly Talker[], tool: string, round: number): Promise<void> {
  const marker = ({ name }: Talker) => `${name}#${round}`
  const outcomes = await Promise.all(talkers.map((talker) => talk(talker, tool, marker(talker))))
  expect(outcomes).toEqual(talkers.map((talker) => expected(talker.name, marker(talker))))
}

/** What one conversation is to come to, and nothing else. */
const expected = (name: string, marker: string) => ({
  ...heardIn(marker, 1),
  answers: [`${name} says ${marker}/1`, `the model of ${name} says ${marker}/1`],
  name,
})
