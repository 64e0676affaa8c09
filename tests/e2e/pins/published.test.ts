import { expect, test } from 'vitest'
import { isFlag, scanDefinition } from '../../../src/catalog/scan/scan.ts'
import { realTools } from '../../fixtures/real-tools.ts'

test('B5: no tool of three published servers is flagged', async () => {
  const tools = await realTools()
  expect(tools.length).toBeGreaterThan(30)
  const flagged = tools.filter((tool) => scanDefinition({ ...tool }).some(isFlag))
  expect(flagged.map(({ name }) => name)).toEqual([])
})
