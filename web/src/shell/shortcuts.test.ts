import { describe, expect, test } from 'vitest'
import { pages } from '../routing/route.ts'
import { createShortcuts, pageKeys } from './shortcuts.ts'

describe('G10: keyboard', () => {
  test('g and a letter open each page', () => {
    for (const page of pages) {
      const press = createShortcuts()
      expect(press('g', 0)).toBeUndefined()
      expect(press(pageKeys[page], 100)).toEqual({ go: page })
    }
  })

  test('no two pages have the same letter', () => {
    expect(new Set(Object.values(pageKeys)).size).toBe(pages.length)
  })

  test('a letter alone, too late or after another letter does nothing', () => {
    const press = createShortcuts()
    expect(press('s', 0)).toBeUndefined()
    press('g', 0)
    expect(press('s', 5000)).toBeUndefined()
    press('g', 6000)
    press('x', 6100)
    expect(press('s', 6200)).toBeUndefined()
  })

  test('? opens help, / focuses the search, Escape closes', () => {
    const press = createShortcuts()
    expect(['?', '/', 'Escape'].map((key) => press(key, 0))).toEqual(['help', 'search', 'escape'])
    expect(press('constructor', 0)).toBeUndefined()
  })
})
