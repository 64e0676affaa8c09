import { expect, test } from 'vitest'
import { disposeGeneration, type Generation } from './generation.ts'
import { SharedParts } from './generations.ts'

test('B7: a part that cannot be closed does not keep the other parts of a configuration open', async () => {
  const closed: string[] = []
  const part = (name: string, fails = false) => ({
    async [Symbol.asyncDispose]() {
      closed.push(name)
      if (fails) throw new Error(`${name} failed`)
    },
  })
  const chat = part('chat', true)
  const serverParts = sharing({ a: part('a', true), b: part('b') })
  const names = ['models', 'executor', 'plugins', 'authenticate', 'pins', 'traces']
  const parts = sharing(Object.fromEntries(names.map((name) => [name, part(name, name === 'executor')])))
  const catalog = { [Symbol.dispose]() {} }
  const generation = { catalog, chat, serverParts, parts } as unknown as Generation
  const error = await disposeGeneration(generation).catch((thrown) => thrown)
  expect(closed).toEqual(['chat', 'a', 'b', 'models', 'executor', 'plugins', 'authenticate', 'pins', 'traces'])
  expect(error.errors.map(({ message }: Error) => message)).toEqual(['chat failed', 'a failed', 'executor failed'])
})

function sharing(parts: Readonly<Record<string, AsyncDisposable>>): SharedParts {
  const shared = new SharedParts()
  for (const [name, part] of Object.entries(parts)) shared.add(name, undefined, part)
  return shared
}
