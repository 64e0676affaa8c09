import { expect, test } from 'vitest'
import { withoutExcerpt } from '../../format/excerpt.ts'
import { filterTree } from './filter-tree.ts'

const config = {
  server: { host: '127.0.0.1', port: 4322 },
  mcpServers: {
    github: { url: 'https://mcp.example.com', timeout: 30_000 },
    memory: { command: 'npx', args: ['-y', 'memory'] },
  },
}

test('G10: a search in the configuration keeps the path to each match', () => {
  expect(filterTree(config, 'example.com')).toEqual({ mcpServers: { github: { url: 'https://mcp.example.com' } } })
  expect(filterTree(config, ' PORT ')).toEqual({ server: { port: 4322 } })
})

test('G10: a matching key or path keeps everything below it', () => {
  expect(filterTree(config, 'github')).toEqual({ mcpServers: { github: config.mcpServers.github } })
  expect(filterTree(config, 'memory.command')).toEqual({ mcpServers: { memory: { command: 'npx' } } })
})

test('G10: an empty search returns everything, no match returns nothing', () => {
  expect(filterTree(config, '')).toBe(config)
  expect(filterTree(config, 'nowhere')).toBeUndefined()
})

test('G8: an error in the history omits the excerpt of the file', () => {
  const error = 'There is a problem:\na.yaml:12:3: unknown key `x`\n  12 |  x: 1\n     |  ^\n'
  expect(withoutExcerpt(error)).toBe('There is a problem:\na.yaml:12:3: unknown key `x`')
  expect(withoutExcerpt('  all of it indented')).toBe('  all of it indented')
})
