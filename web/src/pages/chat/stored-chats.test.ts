import { expect, test } from 'vitest'
import { createChatStore, maxChats } from './stored-chats.ts'
import { isToolChosen, toggleServer, toggleTool } from './tool-choice.ts'
import { newTurn } from './turn.ts'

function memoryStorage() {
  const kept = new Map<string, string>()
  return {
    get length() {
      return kept.size
    },
    key: (index: number) => [...kept.keys()][index] ?? null,
    getItem: (key: string) => kept.get(key) ?? null,
    setItem: (key: string, text: string) => void kept.set(key, text),
    removeItem: (key: string) => void kept.delete(key),
  }
}

test('G10: conversations are bounded, belong to a user, and are kept without images', () => {
  const storage = memoryStorage()
  const store = createChatStore(storage, 'ann')
  const turns = [newTurn('Hi', [{ name: 'a.png', url: 'data:image/png;base64,AAAA' }])]
  for (let at = 0; at < maxChats + 3; at++) store.save({ id: `${at}`, title: 't', updatedAt: at, turns })
  expect(store.list().map(({ id }) => id)).toEqual(Array.from({ length: maxChats }, (_, at) => `${maxChats + 2 - at}`))
  expect(store.list()[0]?.turns[0]).toMatchObject({ state: 'stopped', images: [{ name: 'a.png' }] })
  expect(createChatStore(storage, 'bob').list()).toEqual([])
  store.remove('10')
  storage.setItem('toolway.chat.ann.bad', '{"id":"bad"')
  expect(store.list()).toHaveLength(maxChats - 1)
})

test('G10: chosen tools are patterns; all servers mean all tools', () => {
  const servers = ['a', 'b']
  expect(toggleServer(undefined, 'a', servers)).toEqual(['b.*'])
  expect(toggleServer(['b.*'], 'a', servers)).toBeUndefined()
  const choice = toggleTool(undefined, { server: 'a', tool: 'x' }, { servers, tools: ['x', 'y'] })
  expect(choice).toEqual(['b.*', 'a.y'])
  expect([isToolChosen(choice, 'a', 'x'), isToolChosen(choice, 'a', 'y'), isToolChosen(choice, 'b', 'z')]).toEqual([
    false,
    true,
    true,
  ])
})
