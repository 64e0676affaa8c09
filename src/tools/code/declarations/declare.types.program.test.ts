import { execFile } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { temporaryFolder } from '../../../../tests/fixtures/folders.ts'
import { declareServers, toolDeclaration } from './schema-type.ts'

const compiler = fileURLToPath(new URL('../bin/tsc', import.meta.resolve('typescript')))

/** The lines of a program that the compiler complains about. */
async function faults(program: string): Promise<number[]> {
  await using folder = await temporaryFolder()
  const file = join(folder.path, 'program.ts')
  await writeFile(file, program)
  const options = ['--noEmit', '--strict', '--target', 'esnext', '--module', 'esnext', '--ignoreConfig', '--types', '']
  const { stdout } = await promisify(execFile)(process.execPath, [compiler, ...options, file]).catch((thrown) => thrown)
  return [...String(stdout).matchAll(/program\.ts\((\d+),/g)].map(([, line]) => Number(line))
}

const orders = {
  inputSchema: {
    type: 'object',
    properties: {
      status: { enum: ['open', 'paid'] },
      page: { type: 'integer' },
      labels: { type: 'object', properties: { a: { type: 'string' } }, additionalProperties: { type: 'number' } },
      range: { type: 'array', prefixItems: [{ type: 'string' }, { type: 'string' }], items: false, minItems: 2 },
      by: { anyOf: [{ $ref: '#/$defs/key' }, { type: 'null' }] },
    },
    required: ['status'],
    $defs: { key: { type: 'object', properties: { id: { type: 'number' } }, required: ['id'] } },
  },
  outputSchema: {
    type: 'object',
    properties: {
      rows: {
        type: 'array',
        items: { type: 'object', properties: { total: { type: 'number' } }, required: ['total'] },
      },
    },
    required: ['rows'],
  },
}

test('B9: the compiler accepts a right call by the declaration and refuses wrong ones', {
  timeout: 60_000,
}, async () => {
  const method = toolDeclaration({ identifier: 'list', name: 'list', definition: orders }, 6000)
  const declaration = declareServers(new Map([['orders', [method]]])).replaceAll('\n', ' ')
  const program = [
    declaration,
    "const right = await tools.orders.list({ status: 'open', range: ['a', 'b'], by: { id: 1 } })",
    'export const sum: number = right.rows.reduce((total, row) => total + row.total, 0)',
    "await tools.orders.list({ status: 'open', by: null, page: 2, labels: { a: 'x', n: 1 } })",
    'await tools.orders.list({})',
    "await tools.orders.list({ status: 'lost' })",
    "await tools.orders.list({ status: 'open', page: 'two' })",
    "await tools.orders.list({ status: 'open', range: ['a'] })",
    'right.rows.map((row) => row.price)',
    'await tools.orders.lists({})',
  ]
  expect(await faults(program.join('\n'))).toEqual([5, 6, 7, 8, 9, 10])
})
