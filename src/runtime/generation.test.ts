import { expect, test } from 'vitest'
import { disposeGeneration, type Generation } from './generation.ts'

test('B7: a part that cannot be closed does not keep the other parts of a configuration open', async () => {
  const closed: string[] = []
  const part = (name: string, fails = false) => ({
    async [Symbol.asyncDispose]() {
      closed.push(name)
      if (fails) throw new Error(`${name} failed`)
    },
  })
  const generation = {
    catalog: { [Symbol.dispose]() {} },
    chat: part('chat', true),
    servers: new Map([
      ['a', { server: part('a', true) }],
      ['b', { server: part('b') }],
    ]),
    models: { value: part('models') },
    executor: { value: part('executor', true) },
    plugins: { value: part('plugins') },
    inboundAuth: { authenticate: part('authenticate') },
    pins: part('pins'),
    traces: part('traces'),
  } as unknown as Generation
  const error = await disposeGeneration(generation, []).catch((thrown) => thrown)
  expect(closed).toEqual(['chat', 'a', 'b', 'models', 'executor', 'plugins', 'authenticate', 'pins', 'traces'])
  expect(error.errors.map(({ message }: Error) => message)).toEqual(['chat failed', 'a failed', 'executor failed'])
})
