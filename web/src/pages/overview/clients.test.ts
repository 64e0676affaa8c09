import { expect, test } from 'vitest'
import { clientsFor } from './clients.ts'

const url = 'http://127.0.0.1:4322/mcp'

test('G10: every snippet contains the endpoint and none contains a token', () => {
  for (const { name, text } of Object.values(clientsFor(url))) {
    expect(text, name).toContain(url)
    expect(text, name).toMatch(/TOOLWAY_TOKEN|\$\{input:toolway\}/)
  }
})

test('G10: snippets for JSON files are valid JSON', () => {
  for (const { name, target, text } of Object.values(clientsFor(url))) {
    if (target.endsWith('.json')) expect(() => JSON.parse(text), name).not.toThrow()
  }
})

test('V15: snippets for an endpoint have an entry of their own', () => {
  const { curl: _, ...clients } = clientsFor(`${url}/research`, 'toolway-research')
  for (const { name, text } of Object.values(clients)) {
    expect(text, name).toContain(`${url}/research`)
    expect(text, name).toMatch(/["\s.]toolway-research["\s\]]/)
  }
})
