import { expect, test } from 'vitest'

const files = import.meta.glob<string>('./**/*.{ts,tsx}', { query: '?raw', import: 'default', eager: true })

/** Imports from outside the dashboard, that is, from the gateway. */
const outside = Object.entries(files).flatMap(([file, text]) =>
  [...text.matchAll(/import\s+(type\s+)?[^'"]*from '((?:\.\.\/)+src\/[^']+)'/g)].map(([, type, path = '']) => ({
    file,
    path: path.replace(/^(\.\.\/)+/, ''),
    typesOnly: type !== undefined,
  })),
)

test('the dashboard imports only the types of the admin contract from the gateway', () => {
  expect(outside.length).toBeGreaterThan(20)
  expect(outside.filter(({ path, typesOnly }) => path !== 'src/serve/admin/contract.ts' || !typesOnly)).toEqual([])
})
