import { expect, test } from 'vitest'
import { createLazy } from './memoize.ts'

test('T5: a value is loaded once, and again only after a failure', async () => {
  let attempts = 0
  const lazy = createLazy(async () => {
    attempts++
    if (attempts === 1) throw new Error('no files left')
    return attempts
  })
  expect(await lazy.loaded()).toBeUndefined()
  const both = await Promise.allSettled([lazy.get(), lazy.get()])
  expect(both.map(({ status }) => status)).toEqual(['rejected', 'rejected'])
  expect(await lazy.loaded()).toBeUndefined()
  expect(await Promise.all([lazy.get(), lazy.get()])).toEqual([2, 2])
  expect([await lazy.loaded(), attempts]).toEqual([2, 2])
})

test('T5: whether a value was loaded can be asked while loading fails', async () => {
  const lazy = createLazy(() => Promise.reject(new Error('no files left')))
  lazy.get().catch(() => {})
  expect(await lazy.loaded()).toBeUndefined()
})
