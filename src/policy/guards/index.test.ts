import { describe, expect, test, vi } from 'vitest'
import { honestPaths, pathAttacks } from '../../../tests/abuse/paths.ts'
import {
  honestMysql,
  honestSql,
  honestSqlite,
  mysqlAttacks,
  sqlAttacks,
  sqliteAttacks,
} from '../../../tests/abuse/sql.ts'
import { honestUrls, urlAttacks } from '../../../tests/abuse/urls.ts'
import { compileGuards } from './index.ts'
import type { GuardConfig } from './selector.ts'

const files: GuardConfig = { kind: 'path', arguments: ['path', 'paths[]', 'options.path'], roots: ['/data'] }
const database: GuardConfig = { kind: 'sql', arguments: ['sql'], dialect: 'postgres', readOnly: true }
const web: GuardConfig = { kind: 'url', arguments: ['items[].url'], allowPrivate: false }
const check = compileGuards([files, database, web], { server: 'all' })!

describe('guards', () => {
  test('F9: a server without guards has nothing to run', () => {
    expect(compileGuards([], { server: 'plain' })).toBeUndefined()
  })

  test('F9: a call without guarded arguments does not wait', () => {
    expect(check({})).toBeUndefined()
    expect(check({ other: '../../etc/passwd', options: {}, items: [] })).toBeUndefined()
  })

  test('F9: every guard of a server looks at its own arguments', async () => {
    await check({ path: '/data/a', paths: ['/data/b'], sql: 'SELECT 1', items: [{ url: 'http://8.8.8.8/' }] })
    await expect(check({ path: '/data/a', paths: ['/data/b', '/etc'] })).rejects.toMatchObject({
      code: 'INVALID_PATH',
      details: { server: 'all', rule: 'mcpServers.all.guards[0]' },
    })
    await expect(check({ path: '/data/a', sql: 'DROP TABLE a' })).rejects.toMatchObject({
      code: 'UNSAFE_SQL',
      details: { rule: 'mcpServers.all.guards[1]' },
    })
    await expect(check({ items: [{ url: 'http://8.8.8.8/' }, { url: 'http://10.0.0.1/' }] })).rejects.toMatchObject({
      code: 'UNSAFE_URL',
      message: expect.stringContaining('"items[1].url"'),
      details: { rule: 'mcpServers.all.guards[2]' },
    })
  })

  test.each([
    [{ path: 1 }, 'The argument "path" must be a string.'],
    [{ path: ['/etc/passwd'] }, 'The argument "path" must be a string.'],
    [{ path: { toString: '/etc/passwd' } }, 'The argument "path" must be a string.'],
    [{ path: '/data/a', PATH: 1 }, 'The argument "PATH" must be a string.'],
    [{ paths: '/etc/passwd' }, 'The argument "paths" must be a list, or omitted.'],
    [{ path: true }, 'The argument "path" must be a string.'],
    [{ path: null }, 'The argument "path" must be a string, not null; omit it'],
    [{ PATH: null }, 'The argument "PATH" must be a string, not null; omit it'],
    [{ paths: null }, 'The argument "paths" must be a list, or omitted.'],
    [{ paths: ['/data/a', null] }, 'The argument "paths[1]" must be a string, not null; omit it'],
    [{ options: null }, 'The argument "options" must be an object, or omitted.'],
    [{ options: { path: null } }, 'The argument "options.path" must be a string, not null; omit it'],
    [{ sql: null }, 'The argument "sql" must be a string, not null; omit it'],
    [{ items: [{ url: null }] }, 'The argument "items[0].url" must be a string, not null; omit it'],
    [{ items: [null] }, 'The argument "items[0]" must be an object, or omitted.'],
    [{ paths: ['/data/a', ['/etc']] }, 'The argument "paths[1]" must be a string.'],
    [{ options: '/etc/passwd' }, 'The argument "options" must be an object, or omitted.'],
    [{ sql: false }, 'The argument "sql" must be a string.'],
    [{ path: '/data/a\0' }, 'The argument "path" contains a NUL character.'],
    [{ sql: "SELECT '\ufffd'" }, 'The argument "sql" contains invalid Unicode.'],
    [{ sql: '\ud800' }, 'The argument "sql" contains invalid Unicode.'],
    [{ paths: Array(257).fill('/data/a') }, 'The argument "paths[]" has more than 256 values; send fewer at a time.'],
  ])('F9: a guarded argument of the wrong type is refused (%#)', (args, message) => {
    expect(() => check(args)).toThrow(message)
    expect(() => check(args)).toThrow(
      expect.objectContaining({ code: expect.stringMatching(/^(INVALID_PATH|UNSAFE_)/) }),
    )
  })

  test('V6: the names of at most 10,000 members are compared, in one object or in many', () => {
    const members = (count: number, prefix = 'k') =>
      Object.fromEntries(Array.from({ length: count }, (_, index) => [`${prefix}${index}`, 'v']))
    expect(check(members(10_000))).toBeUndefined()
    const items = Array.from({ length: 11 }, (_, index) => members(1_000, `k${index}_`))
    for (const args of [members(10_001), { items }]) {
      expect(() => check(args)).toThrow(
        expect.objectContaining({ code: expect.stringMatching(/^(INVALID_PATH|UNSAFE_)/) }),
      )
    }
  })

  test('V6: a name is reduced once for all selectors of a guard, because long names take time', () => {
    const guard = compileGuards([files], { server: 'files' })!
    const long = Object.fromEntries(Array.from({ length: 50 }, (_, index) => ['é'.repeat(300) + index, 'v']))
    const reduced = vi.spyOn(String.prototype, 'toUpperCase')
    expect(guard({ ...long, options: long })).toBeUndefined()
    const names = reduced.mock.contexts.filter((text) => String(text).length > 256)
    reduced.mockRestore()
    expect(names).toHaveLength(100)
  })

  test('F9: an invalid argument selector is an error before anything runs', () => {
    expect(() => compileGuards([{ ...files, arguments: ['paths[0]'] }], { server: 'files' })).toThrow(
      'mcpServers.files.guards[0].arguments: invalid argument selector "paths[0]"; use a form such as path, paths[] or options.file.',
    )
  })

  test('F9: the corpus is as large as it has to be, and nothing is in it twice', () => {
    const attacks = [pathAttacks, sqlAttacks, mysqlAttacks, sqliteAttacks, urlAttacks]
    const honest = [honestPaths, honestSql, honestMysql, honestSqlite, honestUrls]
    expect(attacks.flat().length).toBeGreaterThanOrEqual(150)
    expect(honest.flat().length).toBeGreaterThanOrEqual(80)
    for (const list of [...attacks, ...honest]) expect(new Set(list.map(([, value]) => value)).size).toBe(list.length)
  })
})
