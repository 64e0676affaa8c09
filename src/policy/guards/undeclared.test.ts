import { describe, expect, test } from 'vitest'
import type { Definition } from '../../core/entry.ts'
import { argumentValidator } from '../arguments/validate.ts'
import { compileGuards } from './index.ts'
import type { GuardConfig } from './selector.ts'

const files: GuardConfig = { kind: 'path', arguments: ['path', 'paths[]', 'options.path'], roots: ['/data'] }
const database: GuardConfig = { kind: 'sql', arguments: ['sql'], dialect: 'postgres', readOnly: true }
const web: GuardConfig = { kind: 'url', arguments: ['url'], allowPrivate: false }
const checkFiles = compileGuards([files], { server: 'files' })!
const checkDatabase = compileGuards([database], { server: 'db' })!
const checkWeb = compileGuards([web], { server: 'web' })!

const open: Definition = { inputSchema: { type: 'object', properties: { path: { type: 'string' } } } }
const run = async (check: typeof checkFiles, args: Record<string, unknown>, definition = open) =>
  check(args, undefined, definition)

describe('undeclared arguments that look like guarded ones', () => {
  test.each([
    ...['path2', 'path_1', 'path[0]', 'file-02', 'filePath3'],
    ...['file', 'File', 'FILE', 'file ', ' file', 'files', 'filename', 'fileName', 'file_name', 'filepath', 'filePath'],
    ...['file_path', 'file-path', 'FILE_PATH', 'pathname', 'targetPath', 'target_dir', 'directory', 'directories'],
    ...[
      'folder',
      'outputFile',
      'source',
      'destination',
      'dest',
      'cwd',
      'uri',
      'url',
      'PATH',
      'path ',
      'Path',
      'p_a_t_h',
    ],
    // Look-alikes: Cyrillic, full width, long s, a zero-width space, a combining mark, mathematical letters.
    ...[
      'р\u0430th',
      '\uff50\uff41\uff54\uff48',
      'file\u017f',
      'fi\u200ble',
      'fi\u0301le',
      '\u{1d429}\u{1d41a}\u{1d42d}\u{1d421}',
    ],
  ])('F9: %j is guarded as a path', async (name) => {
    await expect(run(checkFiles, { [name]: '/etc/passwd' })).rejects.toMatchObject({
      code: 'INVALID_PATH',
      details: { rule: 'mcpServers.files.guards[0]' },
    })
    await expect(run(checkFiles, { [name]: ['/data/a', '/etc/passwd'] })).rejects.toMatchObject({
      code: 'INVALID_PATH',
    })
    for (const value of [null, 1, true, {}, [null], [['/data/a']]]) {
      await expect(run(checkFiles, { [name]: value }), JSON.stringify(value)).rejects.toMatchObject({
        code: 'INVALID_PATH',
      })
    }
    await run(checkFiles, { path: '/data/a' })
  })

  test('F9: one that lies inside the roots passes, as a string, as a list and as a file URI', async () => {
    await run(checkFiles, { file: '/data/a', files: ['/data/b'], uri: 'file:///data/c', link: 'https://example.com/' })
    await expect(run(checkFiles, { uri: 'file:///etc/passwd' })).rejects.toMatchObject({ code: 'INVALID_PATH' })
    await expect(run(checkFiles, { uri: 'etc/passwd' })).rejects.toMatchObject({ code: 'INVALID_PATH' })
  })

  test.each(['query', 'SQL_query', 'statement', 'rawSql', 'statements'])('F9: %j is guarded as SQL', async (name) => {
    await expect(run(checkDatabase, { [name]: 'DROP TABLE users' })).rejects.toMatchObject({ code: 'UNSAFE_SQL' })
    await run(checkDatabase, { [name]: 'SELECT 1' })
  })

  test.each(['uri', 'URI', 'href', 'link', 'callback_url', 'webhookUrl', 'endpoint', 'urls'])(
    'F9: %j is guarded as a URL',
    async (name) => {
      await expect(run(checkWeb, { [name]: 'http://169.254.169.254/' })).rejects.toMatchObject({ code: 'UNSAFE_URL' })
      await run(checkWeb, { [name]: 'http://8.8.8.8/' })
    },
  )

  test.each(['name', 'profile', 'file_type', 'pathological', 'encoding', 'limit', 'source_language'])(
    'F9: %j looks like nothing that a guard knows',
    async (name) => {
      await run(checkFiles, { [name]: '../x' })
    },
  )

  test('F9: what the schema declares is for the operator to name', async () => {
    const schema = {
      type: 'object',
      properties: { file: {}, options: { properties: { file: {} } } },
      allOf: [{ properties: { dir: {} } }],
      $ref: '#/$defs/more',
      $defs: { more: { properties: { folder: {} }, anyOf: [{ $ref: '#' }, { $ref: '#/$defs/more' }] } },
    }
    const definition = { inputSchema: schema }
    await run(checkFiles, { file: 'x', dir: 'x', folder: 'x', options: { file: 'x' } }, definition)
    await expect(run(checkFiles, { filename: 'x' }, definition)).rejects.toMatchObject({ code: 'INVALID_PATH' })
    await expect(run(checkFiles, { options: { dir: 'x' } }, definition)).rejects.toMatchObject({
      code: 'INVALID_PATH',
      message: expect.stringContaining('"options.dir"'),
    })
  })

  test('F9: members behind a reference with escapes, or into a list, are declared', async () => {
    const schema = {
      allOf: [{ $ref: '#/%24defs/more' }, { $ref: '#/anyOf/0' }],
      anyOf: [{ properties: { file: {} } }, {}],
      $defs: { more: { properties: { folder: {} } } },
    }
    await run(checkFiles, { file: 'x', folder: 'x' }, { inputSchema: schema })
  })

  test('F9: arguments of prompts are declared by a list', async () => {
    const prompt = { arguments: [{ name: 'file' }] }
    await run(checkFiles, { file: 'x' }, prompt)
    await expect(run(checkFiles, { filename: 'x' }, prompt)).rejects.toMatchObject({ code: 'INVALID_PATH' })
    await expect(run(checkFiles, { path: null }, prompt)).rejects.toMatchObject({ code: 'INVALID_PATH' })
  })

  test('F9: without a schema nothing is declared', async () => {
    await expect(run(checkFiles, { file: '/etc/passwd' }, {})).rejects.toMatchObject({ code: 'INVALID_PATH' })
  })

  test('F9: where the schema forbids additional properties, validation refuses them before any guard', async () => {
    const validate = argumentValidator({ log: { warn() {} } as never })
    const schema = { ...open.inputSchema, additionalProperties: false }
    for (const name of ['file', 'PATH', 'path ', 'р\u0430th']) {
      await expect(async () =>
        validate(schema, { path: '/data/a', [name]: '/data/b' }, 'files.read'),
      ).rejects.toMatchObject({ code: 'INVALID_ARGUMENTS' })
    }
  })
})
